// A conversation with a model, by the same API that every client uses.

import { Answer } from "./answer.js";
import { byId, element, setText } from "./dom.js";

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
    select.replaceChildren(
      ...models.map((name) => element("option", { value: name, selected: name === chosen }, name)),
    );
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

function say(role, text) {
  const bubble = element("p", { class: `bubble ${role}` }, text);
  byId("chat-log").append(
    element(
      "div",
      { class: "turn" },
      element("span", { class: "unseen" }, role === "user" ? "You:" : "Model:"),
      bubble,
    ),
  );
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
  const given = Object.entries(numbers)
    .map(([name, id]) => [name, byId(id).value])
    .filter(([, value]) => value !== "");
  return {
    model: byId("chat-model").value || "default",
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: true,
    stream_options: { include_usage: true },
    ...Object.fromEntries(given.map(([name, value]) => [name, Number(value)])),
  };
}
