// The points of the last hour, and which charts there are of them.

import { HEIGHT_PX, makeChart } from "./chart.js";
import { byId } from "./dom.js";
import { count, rate, seconds } from "./format.js";

const HOUR_S = 3600;
// Of a service that is young, so that its first minutes can be seen.
const SHORTEST_S = 600;

const percentiles = (name) => [
  [`${name}_p50_s`, "median"],
  [`${name}_p90_s`, "p90"],
  [`${name}_p99_s`, "p99"],
];
const CHARTS = [
  {
    title: "Tokens per second",
    write: rate,
    lines: [
      ["tokens_per_s", "written"],
      ["prompt_tokens_per_s", "read"],
    ],
  },
  { title: "Time to first token", write: seconds, lines: percentiles("ttft") },
  { title: "Time between tokens", write: seconds, lines: percentiles("itl") },
  { title: "Time of a whole answer", write: seconds, lines: percentiles("e2e") },
  {
    title: "Jobs now",
    write: count,
    lines: [
      ["running", "running"],
      ["queued", "in queue"],
    ],
  },
  {
    title: "Requests per second",
    write: rate,
    lines: [
      ["requests_per_s", "ended"],
      ["errors_per_s", "failed"],
    ],
  },
];

export class Charts {
  #points = [];
  #interval_s = 10;
  #drawn = [];

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#build());
    new ResizeObserver(() => this.#resize()).observe(byId("chart-list"));
    this.#build();
  }

  get points() {
    return this.#points;
  }

  setHistory(history) {
    this.#interval_s = history.interval_s;
    this.#points = history.points;
    this.#draw();
  }

  add(point) {
    const last = this.#points.at(-1);
    if (last && point.at <= last.at) return; // told before, in the history
    this.#points.push(point);
    while (this.#points[0].at < point.at - HOUR_S) this.#points.shift();
    this.#draw();
  }

  #build() {
    for (const { plot } of this.#drawn) plot.destroy();
    this.#drawn = CHARTS.map((chart, index) => makeChart(chart, index));
    byId("chart-list").replaceChildren(...this.#drawn.map(({ frame }) => frame));
    this.#resize();
    this.#draw();
  }

  #resize() {
    for (const { plot, frame } of this.#drawn) {
      const width = frame.querySelector(".plot").clientWidth;
      if (width && width !== plot.width) plot.setSize({ width, height: HEIGHT_PX });
    }
  }

  #draw() {
    const points = withGaps(this.#points, 2.5 * this.#interval_s);
    const end_s = points.at(-1)?.at ?? Date.now() / 1000;
    const span_s = Math.max(SHORTEST_S, Math.min(HOUR_S, end_s - (points[0]?.at ?? end_s)));
    CHARTS.forEach((chart, index) => {
      const { plot, tell } = this.#drawn[index];
      plot.batch(() => {
        plot.setData(
          [points.map((p) => p.at), ...chart.lines.map(([field]) => points.map((p) => p[field] ?? null))],
          false,
        );
        plot.setScale("x", { min: end_s - span_s, max: end_s });
      });
      tell(null);
    });
  }
}

// Where no gateway was there to look, no line is drawn.
function withGaps(points, longest_s) {
  const all = [];
  for (const point of points) {
    if (all.length && point.at - all.at(-1).at > longest_s) all.push({ at: all.at(-1).at + 1 });
    all.push(point);
  }
  return all;
}
