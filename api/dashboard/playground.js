// A conversation with a model, by the same API that every client uses.

import { byId, element, setText } from "./dom.js";
import { count, rate, seconds, shortId } from "./format.js";
import { request } from "./gateway.js";
import { markOwn } from "./jobs.js";
import { events } from "./sse.js";

export class Playground {
  #messages = []; // what was said, without the system prompt
  #controller = null; // of the answer that is being written

  constructor() {
    byId("chat-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    byId("chat-text").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      byId("chat-form").requestSubmit();
    });
    byId("chat-stop").addEventListener("click", () => this.#controller?.abort());
    byId("chat-new").addEventListener("click", () => this.#startAnew());
  }

  setModels(view) {
    const select = byId("chat-model");
    const models = view.models.length ? view.models : [view.model];
    const shown = [...select.options].map((option) => option.value);
    if (shown.join("\n") === models.join("\n")) return;
    const chosen = models.includes(select.value) ? select.value : view.model;
    select.replaceChildren(...models.map((name) => element("option", { value: name, selected: name === chosen }, name)));
  }

  #startAnew() {
    this.#controller?.abort();
    this.#messages = [];
    byId("chat-log").replaceChildren();
    setText(byId("chat-figures"), "");
    byId("chat-text").focus();
  }

  async #send() {
    const text = byId("chat-text").value.trim();
    if (!text || this.#controller || !areParametersValid()) return;
    const messages = this.#messages;
    if (!messages.length) byId("chat-log").replaceChildren();
    messages.push({ role: "user", content: text });
    say("user", text);
    byId("chat-text").value = "";
    const bubble = say("assistant", "");
    const answer = new Answer(bubble);
    this.#setBusy(new AbortController());
    try {
      await answer.follow(body(messages), this.#controller.signal);
    } catch (error) {
      answer.breakOff(error);
    } finally {
      this.#setBusy(null);
    }
    if (answer.text) messages.push({ role: "assistant", content: answer.text });
    else messages.pop(); // an unanswered question would be asked twice
    await answer.tellTimings();
  }

  #setBusy(controller) {
    this.#controller = controller;
    byId("chat-send").disabled = controller !== null;
    byId("chat-stop").disabled = controller === null;
    byId("chat-log").setAttribute("aria-busy", controller !== null);
  }
}

// One answer while it comes: its text and its figures.
class Answer {
  text = "";
  #jobId = null;
  #usage = null;
  #first_ms = null;
  #last_ms = null;
  #sent_ms = performance.now();
  #bubble;

  constructor(bubble) {
    this.#bubble = bubble;
  }

  async follow(sent, signal) {
    const options = { method: "POST", body: JSON.stringify(sent), signal, headers: { "Content-Type": "application/json" } };
    setText(byId("chat-figures"), "Waiting for the first token.");
    this.#sent_ms = performance.now();
    const response = await request("/v1/chat/completions", options);
    this.#jobId = response.headers.get("X-Job-Id");
    if (this.#jobId) {
      markOwn(this.#jobId);
      this.#bubble.dataset.jobId = this.#jobId;
    }
    for await (const event of events(response.body)) {
      if (event.data === "[DONE]") return;
      this.#take(JSON.parse(event.data));
    }
  }

  #take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) this.#usage = chunk.usage;
    const piece = chunk.choices?.[0]?.delta?.content;
    if (piece) {
      this.#last_ms = performance.now();
      if (this.#first_ms == null) {
        this.#first_ms = this.#last_ms;
        this.#bubble.dataset.ttftS = (this.#first_ms - this.#sent_ms) / 1000;
      }
      this.text += piece;
      this.#bubble.append(piece);
      const log = byId("chat-log");
      log.scrollTop = log.scrollHeight;
    }
    this.#tell();
  }

  breakOff(error) {
    const isStopped = error.name === "AbortError";
    this.#bubble.append(element("span", { class: isStopped ? "muted" : "error" }, isStopped ? " (stopped)" : ` ${error.message}`));
    if (!isStopped && !this.#jobId) setText(byId("chat-figures"), "");
  }

  #tell() {
    if (this.#first_ms == null) return;
    const told = [`First token after ${seconds((this.#first_ms - this.#sent_ms) / 1000)}`];
    const written_s = (this.#last_ms - this.#first_ms) / 1000;
    const tokens = this.#usage?.completion_tokens;
    if (tokens > 1 && written_s > 0) told.push(`${rate((tokens - 1) / written_s)} tokens/s`);
    if (tokens) told.push(`${count(tokens)} tokens`);
    setText(byId("chat-figures"), told.join(" · "));
  }

  // As the service itself measured them, once it has.
  async tellTimings() {
    if (!this.#jobId) return;
    const job = await request(`/jobs/${this.#jobId}?wait_s=5`).then((response) => response.json()).catch(() => null);
    if (!job) return;
    const { timings, usage } = job;
    const cached = usage.cached_tokens ? `, ${count(usage.cached_tokens)} of them kept from before` : "";
    setText(
      byId("chat-figures"),
      `First token after ${seconds(timings.ttft_s)} · ${rate(timings.tokens_per_s)} tokens/s · ` +
        `${count(usage.completion_tokens)} tokens in ${seconds(timings.total_s)} · prompt of ${count(usage.prompt_tokens)}${cached} · ` +
        `seed ${job.seed} · ${job.status} as job ${shortId(job.job_id)}${job.worker ? ` on ${job.worker}` : ""}`,
    );
  }
}

function say(role, text) {
  const bubble = element("p", { class: `bubble ${role}` }, text);
  byId("chat-log").append(element("div", { class: "turn" }, element("span", { class: "unseen" }, role === "user" ? "You:" : "Model:"), bubble));
  byId("chat-log").scrollTop = byId("chat-log").scrollHeight;
  return bubble;
}

function areParametersValid() {
  return ["chat-temperature", "chat-max-tokens", "chat-seed"].every((id) => byId(id).reportValidity());
}

// A field that is left empty is not sent: the service's own default holds.
function body(messages) {
  const system = byId("chat-system").value.trim();
  const numbers = { temperature: "chat-temperature", max_tokens: "chat-max-tokens", seed: "chat-seed" };
  const given = Object.entries(numbers).map(([name, id]) => [name, byId(id).value]).filter(([, value]) => value !== "");
  return {
    model: byId("chat-model").value || "default",
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: true,
    stream_options: { include_usage: true },
    ...Object.fromEntries(given.map(([name, value]) => [name, Number(value)])),
  };
}
