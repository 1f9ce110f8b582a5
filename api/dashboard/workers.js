// The workers, one card each, and what the service has to say about those that could not start.

import { byId, element, figure, keep, setPart, setText } from "./dom.js";
import { count, megabytes, percent, plural, ranges, rate, seconds } from "./format.js";

export function showWorkers(view, shareThrottled) {
  byId("workers").hidden = view.workers === null;
  if (view.workers === null) return;
  const show = (card, worker) => update(card, worker, shareThrottled(worker));
  keep(byId("worker-list"), view.workers, (worker) => worker.incarnation, make, show);
  const failures = view.failures.map((f) => ({
    key: `failed ${f.name}`,
    text: `${f.name} on ${f.host} could not start: ${f.message}`,
  }));
  const warnings = view.warnings.map((text) => ({ key: `warning ${text}`, text }));
  keep(
    byId("worker-notes"),
    [...failures, ...warnings],
    (note) => note.key,
    () => element("li"),
    (line, note) => setText(line, note.text),
  );
}

function make(worker) {
  const bar = (name, part) =>
    element(
      "div",
      { class: "gauge" },
      element("span", {}, name),
      element("progress", { max: 1, "data-part": `${part}-bar`, "aria-label": `${name} of ${worker.name}` }),
      element("span", { class: "number", "data-part": part }),
    );
  return element(
    "article",
    { class: "card", "data-worker": worker.name },
    element(
      "header",
      {},
      element("h3", {}, worker.name),
      element("span", { class: "pill", "data-part": "state" }),
    ),
    element("p", { class: "muted", "data-part": "what" }),
    bar("Slots", "slots"),
    bar("KV cache", "kv"),
    element(
      "dl",
      { class: "facts" },
      figure("Tokens/s", "tokens"),
      figure("Prompt tokens/s", "prefill"),
      figure("Memory", "memory"),
      figure("CPU", "cpu"),
    ),
    element("p", { class: "warning", "data-part": "trouble" }),
  );
}

function update(card, worker, throttled) {
  const state = card.querySelector('[data-part="state"]');
  state.dataset.state = worker.state;
  setText(state, worker.state);
  const cores = worker.cores.length
    ? `core${worker.cores.length === 1 ? "" : "s"} ${ranges(worker.cores)}`
    : "no cores yet";
  const format = worker.weights ? `, ${worker.weights.format}` : "";
  setPart(
    card,
    "what",
    `${cores} · ${plural(worker.threads, "thread")} · ${worker.model}${format} · ${worker.host}`,
  );
  setGauge(
    card,
    "slots",
    worker.slots ? worker.slots_used / worker.slots : 0,
    `${count(worker.slots_used)} of ${count(worker.slots)}`,
  );
  setGauge(card, "kv", worker.kv_usage ?? 0, percent(worker.kv_usage));
  setPart(card, "tokens", rate(worker.tokens_per_s));
  setPart(card, "prefill", worker.prefill_tokens_per_s ? rate(worker.prefill_tokens_per_s) : "–");
  setPart(card, "memory", megabytes(worker.memory_mb));
  setPart(card, "cpu", `${count(worker.cpu_percent)} %`);
  setPart(card, "trouble", trouble(worker, throttled));
}

function setGauge(card, part, share, text) {
  card.querySelector(`[data-part="${part}-bar"]`).value = Math.min(1, share);
  setPart(card, part, text);
}

function trouble(worker, throttled) {
  if (worker.state === "lost") return `No sign of life for ${seconds(worker.last_beat_s)}.`;
  if (throttled > 0.01) return `Held back by its CPU quota ${percent(throttled)} of the time.`;
  if (worker.batch_invariant === false) return "Answers may differ with what runs beside them.";
  return "";
}
