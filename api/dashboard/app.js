// Puts the page together: what comes on the feed goes to those who show it.

import { Charts } from "./charts.js";
import { byId, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { showJobs } from "./jobs.js";
import { askForKey, storedKey } from "./keys.js";
import { Playground } from "./playground.js";
import { showQueue } from "./queue.js";
import { showReports, startReports } from "./reports.js";
import { Throttling } from "./throttling.js";
import { showTotals } from "./totals.js";
import { verdictOf } from "./verdict.js";
import { showWorkers } from "./workers.js";

const TITLES = { good: "Mini vLLM", busy: "Look: Mini vLLM", bad: "Users wait: Mini vLLM" };

const charts = new Charts();
const playground = new Playground();
const throttling = new Throttling();
const shareThrottled = (worker) => throttling.shareOf(worker);
let view = null;
let seen_ms = 0; // when it came

const feed = new Feed({
  state: showConnection,
  history(history) {
    charts.setHistory(history);
    show();
  },
  point(point) {
    charts.add(point);
    show();
  },
  view(newest) {
    view = newest;
    seen_ms = performance.now();
    throttling.see(view);
    show();
  },
});

function show() {
  if (!view) return;
  setText(byId("model"), view.model);
  showVerdict(verdictOf(view, charts.points, shareThrottled));
  showTotals(view, charts.points.at(-1));
  showWorkers(view, shareThrottled);
  showQueue(view);
  showJobs(view, now_s());
  showReports(view);
  playground.setModels(view);
}

function now_s() {
  return view.at + (performance.now() - seen_ms) / 1000;
}

// A view comes when something changed; the time that a job has waited grows meanwhile.
setInterval(() => {
  if (view?.jobs.some((job) => ["queued", "running"].includes(job.status))) showJobs(view, now_s());
}, 1000);

function showVerdict({ level, text, action }) {
  byId("verdict").dataset.level = level;
  document.title = TITLES[level];
  setText(byId("verdict-text"), text);
  setText(byId("verdict-action"), action);
}

function showConnection(state, why = "") {
  byId("connection").dataset.state = state;
  setText(
    byId("connection"),
    { connecting: "connecting", live: "live", lost: why || "not connected, trying again" }[state],
  );
  byId("key-button").hidden = storedKey() === null;
  document.body.classList.toggle("stale", state !== "live" && view !== null);
}

byId("key-button").addEventListener("click", async () => {
  await askForKey("Another key shows other jobs.");
  feed.restart();
});
startReports();
feed.run();
