// Requests to this page's own gateway, with the key where one is needed.

import { askForKey, storedKey } from "./keys.js";

const ROOT = new URL("../../", import.meta.url);

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Asks for a key and tries again for as long as the one it has is refused. Throws `Refused` for the rest.
export async function request(path, options = {}) {
  for (;;) {
    const key = storedKey();
    const response = await fetch(new URL(path.replace(/^\//, ""), ROOT), {
      ...options,
      headers: { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) },
      cache: "no-store",
      credentials: "omit",
    });
    if (response.ok) return response;
    const message = await messageOf(response);
    if (response.status !== 401) throw new Refused(response.status, message);
    // Another request may have been given one meanwhile.
    if (storedKey() === key) await askForKey(key ? message : "This service needs an API key.");
  }
}

async function messageOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The service answered ${response.status}.`;
  }
}
