// One sentence on whether users wait and why, and one on what to do. Pure: the worst that is true is told.

import { aboutSeconds, percent, plural } from "./format.js";

const LONG_WAIT_S = 5;
const KV_FULL = 0.95;
const THROTTLED = 0.1;
const FAILING_PER_REQUEST = 0.05;
const RECENT_POINTS = 6;
const URGENT = ["high", "normal"];

// `shareThrottled` of a worker; `points` of the history, oldest first. Levels: good, busy, bad.
export function verdictOf(view, points, shareThrottled) {
  const rules = [noWorker, longQueue, failures, lost, requestsFail, throttled, kvFull, warned, suspects, shortQueue];
  for (const rule of rules) {
    const verdict = rule(view, points, shareThrottled);
    if (verdict) return verdict;
  }
  return allWell(view);
}

function noWorker(view) {
  if (!view.workers || ready(view).length) return null;
  const [failure] = view.failures ?? [];
  const starting = view.workers.filter((worker) => ["loading", "waiting"].includes(worker.state));
  if (failure && !starting.length) {
    const text = `Users wait: no worker can start. ${failure.name} said: ${failure.message}`;
    return bad(text, `Fix this on ${failure.host}; the worker is started again by itself.`);
  }
  if (starting.length) {
    const waiting = starting.filter((worker) => worker.state === "waiting").length;
    return waiting === starting.length
      ? bad(
          "Users wait: the workers wait for free cores.",
          "Stop what holds the cores, or start fewer workers or threads.",
        )
      : busy(
          "Users wait a moment: the workers are loading the model.",
          "Nothing to do; this takes seconds to a minute.",
        );
  }
  if (view.workers.length) {
    const states = [...new Set(view.workers.map((worker) => worker.state))].join(" and ");
    return bad(
      `Users wait: no worker is ready, all are ${states}.`,
      "Start workers, or look at why these stopped.",
    );
  }
  return bad(
    "Users wait: there is no worker.",
    "Start one: mini-vllm up, or python -m worker beside this Redis.",
  );
}

function longQueue(view, points, shareThrottled) {
  const [queued, wait_s] = [numQueued(view, ...URGENT), longestWait(view)];
  if (!queued || (wait_s != null && wait_s < LONG_WAIT_S)) return null;
  const slots = sum(ready(view), "slots");
  const used = sum(ready(view), "slots_used");
  if (wait_s == null) {
    return busy(
      `Users wait: ${plural(queued, "job")} in the queue, for how long is not known yet.`,
      "Look again in a few seconds.",
    );
  }
  const why = !view.workers
    ? ""
    : used < slots
      ? ` while ${used} of ${slots} slots are used`
      : `: all ${slots} slots are used`;
  const cause = failures(view) ?? throttled(view, points, shareThrottled);
  const action = cause
    ? `${cause.text} ${cause.action}`
    : view.workers
      ? "Add workers or cores, or send what is not urgent with low priority."
      : "Ask for less at once, or send what is not urgent with low priority.";
  return bad(
    `Users wait about ${aboutSeconds(wait_s)}: ${plural(queued, "job")} in the queue${why}.`,
    action,
  );
}

function failures(view) {
  const [failure] = view.failures ?? [];
  if (!failure) return null;
  return busy(
    `${failure.name} fails to start: ${failure.message}.`.replace(/\.\.$/, "."),
    `Fix this on ${failure.host}.`,
  );
}

function lost(view) {
  const gone = (view.workers ?? []).filter((worker) => worker.state === "lost");
  if (!gone.length) return null;
  const names = gone.map((worker) => worker.name).join(", ");
  return busy(
    `${names} no longer ${gone.length === 1 ? "answers" : "answer"}; the jobs go on elsewhere.`,
    "If this lasts, look at the worker's log and its machine's memory.",
  );
}

function requestsFail(view, points) {
  const recent = points.slice(-RECENT_POINTS).filter((point) => view.at - point.at < 120);
  const [ended, errors] = [sum(recent, "requests_per_s"), sum(recent, "errors_per_s")];
  if (!errors || errors < ended * FAILING_PER_REQUEST) return null;
  return busy(
    `Of the requests that ended in the last minute, ${percent(errors / ended)} failed.`,
    "The failed jobs below say why.",
  );
}

function throttled(view, points, shareThrottled) {
  const held = ready(view).filter((worker) => shareThrottled(worker) > THROTTLED);
  if (!held.length) return null;
  const share = percent(Math.max(...held.map(shareThrottled)));
  return busy(
    `Answers come slower than they could: the CPU quota holds ${held[0].name} back (${share} of the time).`,
    "Raise the container's CPU limit, or give the worker fewer threads.",
  );
}

function kvFull(view) {
  const full = ready(view).filter((worker) => worker.kv_usage >= KV_FULL);
  if (!full.length) return null;
  return busy(
    `The KV cache of ${full[0].name} is ${percent(full[0].kv_usage)} full: answers may end for lack of room.`,
    "Shorten prompts, or raise MINI_VLLM_CONTEXT_TOKENS where there is memory.",
  );
}

function warned(view) {
  const [warning] = view.warnings ?? [];
  return warning ? busy(`Nobody waits, but: ${warning}`, "") : null;
}

function suspects(view) {
  const queued = numQueued(view, "suspect");
  if (!queued) return null;
  return busy(
    `${plural(queued, "job")} that workers died of: run alone, one at a time.`,
    "If workers die of them again, those jobs fail with worker_lost.",
  );
}

function shortQueue(view) {
  const [queued, low] = [numQueued(view, ...URGENT), numQueued(view, "low")];
  if (queued) {
    return good(
      `Nobody waits long: ${plural(queued, "job")} in the queue, about ${aboutSeconds(longestWait(view))}.`,
      "Nothing to do.",
    );
  }
  return low ? good(`All is well: nobody waits but ${plural(low, "job")} of low priority.`, "") : null;
}

function allWell(view) {
  if (!view.workers) return good("All is well: nobody waits.", "");
  const workers = ready(view);
  const slots = `${sum(workers, "slots_used")} of ${plural(sum(workers, "slots"), "slot")} used`;
  return good(`All is well: nobody waits. ${plural(workers.length, "worker")} ready, ${slots}.`, "");
}

const good = (text, action) => ({ level: "good", text, action });
const busy = (text, action) => ({ level: "busy", text, action });
const bad = (text, action) => ({ level: "bad", text, action });

function ready(view) {
  return (view.workers ?? []).filter((worker) => worker.state === "ready");
}

function numQueued(view, ...priorities) {
  return sum(view.queue.filter((queue) => priorities.includes(queue.priority)), "queued");
}

// Of the priorities that users wait in; null if one of them is not known. Low priority is there to wait.
function longestWait(view) {
  const waiting = view.queue.filter((queue) => queue.queued && URGENT.includes(queue.priority));
  const waits_s = waiting.map((queue) => queue.expected_wait_s);
  return waits_s.includes(null) ? null : Math.max(0, ...waits_s);
}

function sum(entries, field) {
  return entries.reduce((total, entry) => total + (entry[field] ?? 0), 0);
}
