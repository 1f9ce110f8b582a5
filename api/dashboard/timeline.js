// What a job spent its time on, as a bar: in the queue, reading its prompt, writing its answer.

import { svg } from "./dom.js";
import { seconds } from "./format.js";

const WIDTH = 100;
const NAMES = { queued: "in queue", prefill: "reading the prompt", decode: "writing the answer" };

export function timeline() {
  const parts = Object.keys(NAMES).map((part) => svg("rect", { class: part, y: 0, height: 8 }));
  return svg(
    "svg",
    { class: "timeline", viewBox: `0 0 ${WIDTH} 8`, preserveAspectRatio: "none", role: "img" },
    svg("title"),
    ...parts,
  );
}

// `now_s` by the clock of the service. A job that runs is told as far as it is known.
export function updateTimeline(bar, job, now_s) {
  const spent = spentOf(job, now_s);
  const total_s = Math.max(1e-9, totalOf(job, now_s), spent.queued + spent.prefill + spent.decode);
  let x = 0;
  for (const [part, duration_s] of Object.entries(spent)) {
    const rect = bar.querySelector(`.${part}`);
    const width = (duration_s / total_s) * WIDTH;
    rect.setAttribute("x", x);
    rect.setAttribute("width", width);
    x += width;
  }
  const told = Object.entries(NAMES)
    .filter(([part]) => spent[part] > 0)
    .map(([part, name]) => `${seconds(spent[part])} ${name}`);
  bar.firstElementChild.textContent = told.join(", ") || "nothing yet";
}

export function totalOf(job, now_s) {
  return job.timings.total_s ?? Math.max(0, now_s - Date.parse(job.created_at) / 1000);
}

function spentOf(job, now_s) {
  const { queued_s, prefill_s, decode_s, ttft_s } = job.timings;
  const total_s = totalOf(job, now_s);
  if (job.status === "queued") return { queued: total_s, prefill: 0, decode: 0 };
  const queued = queued_s ?? (job.started_at ? 0 : total_s);
  if (job.status !== "running") return { queued, prefill: prefill_s ?? 0, decode: decode_s ?? 0 };
  const prefill = prefill_s ?? Math.max(0, (ttft_s ?? total_s) - queued);
  return { queued, prefill, decode: Math.max(0, total_s - queued - prefill) };
}
