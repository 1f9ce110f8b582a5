// One chart: its lines by uPlot, and their figures above it.

import uPlot from "./vendor/uPlot.esm.js";
import { element, setText } from "./dom.js";
import { clock } from "./format.js";

export const HEIGHT_PX = 168;

// `lines` of a chart: [field, name] each. `tell` shows the figures of a place in the data; of null, the latest.
export function makeChart(chart, index) {
  const figures = chart.lines.map(() => element("b", { class: "number" }, "–"));
  const keys = chart.lines.map(([, name], i) =>
    element("span", {}, element("span", { class: `swatch line-${i + 1}` }), `${name} `, figures[i]),
  );
  const place = element("div", { class: "plot", role: "img", "aria-labelledby": `chart-${index}` });
  const frame = element(
    "figure",
    { class: "chart" },
    element("figcaption", { id: `chart-${index}` }, element("strong", {}, chart.title), ...keys),
    place,
  );
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
    series: [
      {},
      ...chart.lines.map((_, i) => ({ stroke: colour(`--line-${i + 1}`), width: 1.75, points: { size: 4 } })),
    ],
    hooks: { setCursor: [(plot) => tell(plot.cursor.idx)] },
  };
}
