// The line of figures below the verdict: what goes on now, and what was done in all.

import { byId, figure, keep, setText } from "./dom.js";
import { count, rate } from "./format.js";

export function showTotals(view, point) {
  const queued = view.queue.reduce((sum, queue) => sum + queue.queued, 0);
  const now = [
    ["running", "Running", count(view.running)],
    ["queued", "In queue", count(queued)],
    ["speed", "Tokens/s", rate(point?.tokens_per_s)],
  ];
  const totals = view.totals && [
    ["completed", "Completed", count(view.totals.completed)],
    ["failed", "Failed", count(view.totals.failed)],
    ["cancelled", "Cancelled", count(view.totals.cancelled)],
    ["generated", "Tokens written", count(view.totals.generated_tokens)],
    ["prompt", "Tokens read", count(view.totals.prompt_tokens)],
  ];
  keep(
    byId("totals"),
    [...now, ...(totals ?? [])],
    ([key]) => key,
    ([key, name]) => figure(name, key),
    (shown, [, , text]) => setText(shown.lastElementChild, text),
  );
}
