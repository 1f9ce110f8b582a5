// Makes and keeps elements. Everything that is shown goes in as text: no markup of others is ever read.

const SVG = "http://www.w3.org/2000/svg";

export function byId(id) {
  return document.getElementById(id);
}

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

// What did not change is not touched: a screen reader would say it again, and a selection would be lost.
export function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

export function showError(where, message) {
  setText(where, message ?? "");
  where.hidden = !message;
}

// One child for each entry, in their order. A child that stays keeps its focus.
export function keep(parent, entries, keyOf, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const entry of entries) {
    const key = keyOf(entry);
    let child = known.get(key);
    known.delete(key);
    if (!child) {
      child = make(entry);
      child.dataset.key = key;
    }
    update(child, entry);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const gone of known.values()) gone.remove();
}

// A figure with its name, for a <dl>; the figure is found again by `part`.
export function figure(name, part) {
  return element("div", {}, element("dt", {}, name), element("dd", { "data-part": part }));
}

export function setPart(within, part, text) {
  setText(within.querySelector(`[data-part="${part}"]`), text);
}
