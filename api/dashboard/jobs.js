// The newest jobs that the caller may see, and the button that ends one.

import { byId, element, keep, setText, showError } from "./dom.js";
import { count, seconds, shortId } from "./format.js";
import { request } from "./gateway.js";
import { timeline, totalOf, updateTimeline } from "./timeline.js";

const CELLS = ["job", "status", "priority", "user", "worker", "prompt", "answer", "time", "total", "cancel"];
const NAMES = { prompt: "Prompt", answer: "Answer" };
const NUMBERS = ["prompt", "answer", "total"];

const own = new Set();

// A job of this page is marked as such.
export function markOwn(jobId) {
  own.add(jobId);
}

// `now_s` by the clock of the service.
export function showJobs(view, now_s) {
  setText(byId("jobs-scope"), view.scope === "own" ? "of your key" : "of all");
  byId("jobs-none").hidden = view.jobs.length > 0;
  keep(
    byId("job-rows"),
    view.jobs,
    (job) => job.job_id,
    make,
    (row, job) => update(row, job, now_s),
  );
}

function make(job) {
  const cells = CELLS.map((name) =>
    element("td", {
      class: NUMBERS.includes(name) ? `${name} number` : name,
      "data-part": name,
      "data-name": NAMES[name],
    }),
  );
  const row = element("tr", { "data-job": job.job_id }, ...cells);
  const cell = partOf(row);
  cell("job").append(element("code", { title: job.job_id }, shortId(job.job_id)));
  cell("status").append(element("span", { class: "pill" }));
  cell("time").append(timeline());
  const button = element(
    "button",
    { type: "button", class: "quiet", "aria-label": `Cancel job ${shortId(job.job_id)}` },
    "Cancel",
  );
  button.addEventListener("click", () => cancel(job.job_id, button));
  cell("cancel").append(button);
  return row;
}

function update(row, job, now_s) {
  const cell = partOf(row);
  const pill = cell("status").firstElementChild;
  pill.dataset.state = job.cancelling ? "cancelling" : job.status;
  setText(pill, job.cancelling ? "cancelling" : job.status);
  if (job.error) pill.title = `${job.error.code}: ${job.error.message}`;
  setText(cell("priority"), job.priority);
  setText(cell("user"), job.user ?? (own.has(job.job_id) ? "you, here" : ""));
  setText(cell("worker"), job.worker ?? "");
  const isCounted = job.usage.prompt_tokens > 0;
  setText(cell("prompt"), isCounted ? count(job.usage.prompt_tokens) : "–");
  setText(cell("answer"), count(job.usage.completion_tokens));
  updateTimeline(cell("time").firstElementChild, job, now_s);
  setText(cell("total"), seconds(totalOf(job, now_s)));
  cell("cancel").firstElementChild.hidden = job.cancelling || !["queued", "running"].includes(job.status);
  row.classList.toggle("own", own.has(job.job_id));
}

function partOf(row) {
  return (name) => row.querySelector(`[data-part="${name}"]`);
}

async function cancel(jobId, button) {
  button.disabled = true;
  try {
    await request(`/jobs/${jobId}`, { method: "DELETE" });
    showError(byId("jobs-error"), null);
  } catch (error) {
    showError(byId("jobs-error"), `Job ${shortId(jobId)} was not cancelled: ${error.message}`);
  } finally {
    button.disabled = false; // the feed takes it away once the job has ended
  }
}
