// The one stream that the page lives on: GET /live, again and again until the page is closed.

import { request } from "./gateway.js";
import { events } from "./sse.js";

const FIRST_PAUSE_S = 0.5;
const LONGEST_PAUSE_S = 8;
// Longer than the service is ever silent (MINI_VLLM_SSE_KEEPALIVE_S, unless somebody raised that).
const SILENCE_S = 60;

// `on` has a function for each event by name, and `state` for "connecting", "live" and "lost".
export class Feed {
  constructor(on) {
    this.on = on;
    this.controller = null;
  }

  async run() {
    let pause_s = FIRST_PAUSE_S;
    for (;;) {
      this.on.state("connecting");
      let why = "";
      try {
        await this.follow(() => (pause_s = FIRST_PAUSE_S));
      } catch (error) {
        why = error.status ? error.message : "";
      }
      this.on.state("lost", why);
      await new Promise((resolve) => setTimeout(resolve, pause_s * 1000));
      pause_s = Math.min(LONGEST_PAUSE_S, pause_s * 2);
    }
  }

  // With another key, or after a fall of the network.
  restart() {
    this.controller?.abort();
  }

  async follow(onLive) {
    this.controller = new AbortController();
    const { signal } = this.controller;
    const response = await request("/live", { signal, headers: { Accept: "text/event-stream" } });
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => this.controller.abort(), SILENCE_S * 1000);
    };
    heard();
    try {
      for await (const event of events(response.body, heard)) {
        onLive();
        this.on.state("live");
        this.on[event.name]?.(JSON.parse(event.data));
      }
    } finally {
      clearTimeout(silence);
    }
  }
}
