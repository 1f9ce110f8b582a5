// One answer of the playground while it comes: its text and its figures.

import { byId, element, setText } from "./dom.js";
import { count, rate, seconds, shortId } from "./format.js";
import { request } from "./gateway.js";
import { markOwn } from "./jobs.js";
import { events } from "./sse.js";

export class Answer {
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
    const options = {
      method: "POST",
      body: JSON.stringify(sent),
      signal,
      headers: { "Content-Type": "application/json" },
    };
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
    this.#bubble.append(
      element(
        "span",
        { class: isStopped ? "muted" : "error" },
        isStopped ? " (stopped)" : ` ${error.message}`,
      ),
    );
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
    const job = await request(`/jobs/${this.#jobId}?wait_s=5`)
      .then((response) => response.json())
      .catch(() => null);
    if (!job) return;
    const { timings, usage } = job;
    const cached = usage.cached_tokens ? `, ${count(usage.cached_tokens)} of them kept from before` : "";
    const told = [
      `First token after ${seconds(timings.ttft_s)}`,
      `${rate(timings.tokens_per_s)} tokens/s`,
      `${count(usage.completion_tokens)} tokens in ${seconds(timings.total_s)}`,
      `prompt of ${count(usage.prompt_tokens)}${cached}`,
      `seed ${job.seed}`,
      `${job.status} as job ${shortId(job.job_id)}${job.worker ? ` on ${job.worker}` : ""}`,
    ];
    setText(byId("chat-figures"), told.join(" · "));
  }
}
