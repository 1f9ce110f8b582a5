// Who waits, by priority, and for how long.

import { byId, element, keep, setText } from "./dom.js";
import { count, seconds } from "./format.js";

// Suspect: workers died of them.
const MEANING = { suspect: "suspect, run alone" };

export function showQueue(view) {
  keep(byId("queue-rows"), view.queue, (queue) => queue.priority, make, update);
}

function make(queue) {
  return element(
    "tr",
    { "data-priority": queue.priority },
    element("th", { scope: "row" }, MEANING[queue.priority] ?? queue.priority),
    element("td", { class: "number" }),
    element("td", { class: "number" }),
  );
}

function update(row, queue) {
  setText(row.children[1], count(queue.queued));
  setText(row.children[2], waitOf(queue));
  row.classList.toggle("empty", !queue.queued);
}

function waitOf({ queued, expected_wait_s }) {
  if (expected_wait_s == null) return queued ? "not known" : "–";
  return expected_wait_s > 0 ? seconds(expected_wait_s) : "none";
}
