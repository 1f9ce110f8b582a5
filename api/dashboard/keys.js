// The API key: asked for when the service wants one, kept in session storage and nowhere else.

import { byId, setText } from "./dom.js";

const STORED = "mini-vllm-api-key";
const WRITABLE = /^[\x21-\x7e]{1,512}$/;

let asking = null;

export function storedKey() {
  return sessionStorage.getItem(STORED);
}

// Resolves with a key once the person has given one. Those who ask meanwhile wait for the same.
export function askForKey(why) {
  asking ??= ask(why).finally(() => (asking = null));
  return asking;
}

function ask(why) {
  const [dialog, form, input] = [byId("key-dialog"), byId("key-form"), byId("key-input")];
  setText(byId("key-why"), why);
  input.value = "";
  input.setCustomValidity("");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    input.oninput = () => input.setCustomValidity("");
    dialog.oncancel = (event) => event.preventDefault(); // there is nothing to see without a key
    form.onsubmit = (event) => {
      event.preventDefault();
      const key = input.value.trim();
      if (!WRITABLE.test(key)) {
        input.setCustomValidity("A key is printable ASCII without spaces.");
        input.reportValidity();
        return;
      }
      sessionStorage.setItem(STORED, key);
      input.value = "";
      dialog.close();
      resolve(key);
    };
  });
}
