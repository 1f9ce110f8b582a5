// Reads server-sent events of a fetched stream. An EventSource cannot send a key.

export async function* events(body, onBytes = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes();
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (event.data !== "") yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed already
  }
}

function parse(block) {
  const event = { name: "message", data: [] };
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon < 1) continue; // a comment, which keeps the connection alive
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("event:")) event.name = value;
    else if (line.startsWith("data:")) event.data.push(value);
  }
  return { name: event.name, data: event.data.join("\n") };
}
