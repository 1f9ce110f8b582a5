// Draws the points of the last hour. Which lines there are stands in CHARTS; uPlot does the drawing.

import uPlot from "./vendor/uPlot.esm.js";
import { byId, element, setText } from "./dom.js";
import { clock, count, rate, seconds } from "./format.js";

const HOUR_S = 3600;
// Of a service that is young, so that its first minutes can be seen.
const SHORTEST_S = 600;
const HEIGHT_PX = 168;

const percentiles = (name) => [
  [`${name}_p50_s`, "median"],
  [`${name}_p90_s`, "p90"],
  [`${name}_p99_s`, "p99"],
];
const CHARTS = [
  { title: "Tokens per second", write: rate, lines: [["tokens_per_s", "written"], ["prompt_tokens_per_s", "read"]] },
  { title: "Time to first token", write: seconds, lines: percentiles("ttft") },
  { title: "Time between tokens", write: seconds, lines: percentiles("itl") },
  { title: "Time of a whole answer", write: seconds, lines: percentiles("e2e") },
  { title: "Jobs now", write: count, lines: [["running", "running"], ["queued", "in queue"]] },
  { title: "Requests per second", write: rate, lines: [["requests_per_s", "ended"], ["errors_per_s", "failed"]] },
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
    this.#drawn = CHARTS.map((chart, index) => build(chart, index));
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
        plot.setData([points.map((p) => p.at), ...chart.lines.map(([field]) => points.map((p) => p[field] ?? null))], false);
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

function build(chart, index) {
  const figures = chart.lines.map(() => element("b", { class: "number" }, "–"));
  const keys = chart.lines.map(([, name], i) => element("span", {}, element("span", { class: `swatch line-${i + 1}` }), `${name} `, figures[i]));
  const place = element("div", { class: "plot", role: "img", "aria-labelledby": `chart-${index}` });
  const frame = element("figure", { class: "chart" }, element("figcaption", { id: `chart-${index}` }, element("strong", {}, chart.title), ...keys), place);
  const tell = (at) => tellFigures(plot, chart, figures, at);
  const plot = new uPlot(options(chart, tell), [[], ...chart.lines.map(() => [])], place);
  return { plot, frame, tell };
}

// Those under the cursor, or the latest that are known.
function tellFigures(plot, chart, figures, at) {
  figures.forEach((figure, i) => {
    const values = plot.data[i + 1];
    const value = at == null ? values.findLast((known) => known != null) : values[at];
    setText(figure, chart.write(value));
  });
}

function options(chart, tell) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    width: 320,
    height: HEIGHT_PX,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, space: 60, values: (plot, ticks) => ticks.map(clock) },
      { ...axis, size: 58, space: 26, values: (plot, ticks) => ticks.map((tick) => chart.write(tick)) },
    ],
    series: [{}, ...chart.lines.map((_, i) => ({ stroke: colour(`--line-${i + 1}`), width: 1.75, points: { size: 4 } }))],
    hooks: { setCursor: [(plot) => tell(plot.cursor.idx)] },
  };
}
