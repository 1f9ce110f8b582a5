// The experiments' reports. One is fetched with the key, and what may stand in it is copied, element by
// element: text, tables and embedded pictures. Nothing of it runs, and its own styles are left out.

import { byId, element, keep, showError } from "./dom.js";
import { request } from "./gateway.js";

const COPIED = new Set(
  "H1 H2 H3 P TABLE THEAD TBODY TR TH TD CODE PRE UL OL LI STRONG EM B I DIV".split(" "),
);
const LEFT_OUT = new Set(["SCRIPT", "STYLE", "NAV", "TITLE", "HEAD", "TEMPLATE", "IFRAME", "OBJECT"]);
// The browser would refuse them too, and complain. NOTE: not what makes this safe, that is the copying.
const STYLE = /<style[\s\S]*?<\/style>/gi;
const PICTURE = /^data:image\/(png|jpeg|webp|svg\+xml)[;,]/;

export function startReports() {
  byId("report-close").addEventListener("click", () => byId("report-dialog").close());
}

export function showReports(view) {
  byId("reports").hidden = byId("reports-link").hidden = view.reports.length === 0;
  keep(
    byId("report-list"),
    view.reports,
    (report) => report.href,
    make,
    () => {},
  );
}

function make(report) {
  const button = element("button", { type: "button", class: "quiet" }, report.name);
  button.addEventListener("click", () => open(report, button));
  return element("li", {}, button);
}

async function open(report, button) {
  button.disabled = true;
  try {
    const text = await (await request(report.href)).text();
    const page = new DOMParser().parseFromString(text.replace(STYLE, ""), "text/html");
    byId("report-body").replaceChildren(...copies(page.body));
    byId("report-dialog").showModal();
    showError(byId("report-error"), null);
  } catch (error) {
    showError(byId("report-error"), `The report ${report.name} cannot be shown: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

function copies(parent) {
  return [...parent.childNodes].flatMap((node) => {
    if (node.nodeType === Node.TEXT_NODE) return [node.data];
    if (node.nodeType !== Node.ELEMENT_NODE || LEFT_OUT.has(node.tagName)) return [];
    if (node.tagName === "IMG") return picture(node);
    if (!COPIED.has(node.tagName)) return copies(node);
    const copy = element(node.tagName.toLowerCase(), {}, ...copies(node));
    return [node.tagName === "TABLE" ? element("div", { class: "wide" }, copy) : copy];
  });
}

function picture(node) {
  const source = node.getAttribute("src") ?? "";
  return PICTURE.test(source) ? [element("img", { src: source, alt: node.getAttribute("alt") ?? "" })] : [];
}
