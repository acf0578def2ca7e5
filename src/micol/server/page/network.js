// The third view: the corpus' network around a document.
import * as api from "./api.js";
import { combobox } from "./combobox.js";
import { byId, el, plural, say, show, svg } from "./dom.js";
import { load } from "./tag.js";

const WIDEST = 640;
let path = "";
let isPathChosen = false; // by the person; until then, the first path that leads anywhere is taken
let centre = null;

export function start(model) {
  show(byId("no-corpus"), !model.corpus);
  for (const column of document.querySelectorAll(".with-corpus")) show(column, Boolean(model.corpus));
  if (!model.corpus) return;
  combobox(byId("corpus-search"), {
    label: `Document, one of ${model.corpus.documents.toLocaleString("en")}`, placeholder: "Search title or id…",
    find: findDocument, choose: ({ id }) => look(id),
  });
  path = model.corpus.paths[0] || "";
  byId("paths").replaceChildren(...model.corpus.paths.map((name, index) => el("label", {},
    el("input", { type: "radio", name: "path", value: name, checked: index === 0, onchange: () => follow(name) }),
    el("span", {}, name))));
  byId("other-path").addEventListener("change", (event) => {
    if (!event.target.value.trim()) return;
    for (const radio of document.querySelectorAll("input[name=path]")) radio.checked = false;
    follow(event.target.value.trim());
  });
  byId("tag-this").addEventListener("click", tagThis);
}

async function findDocument(text) {
  const { documents } = await api.documents(text);
  return documents.map(({ id, title }) => ({ id, name: title || id, note: id }));
}

async function follow(name) {
  const before = path;
  path = name;
  isPathChosen = true;
  if (centre && !(await look(centre))) path = before;
}

/** Shows the neighbours of a document, and tells whether that could be done. */
export async function look(id) {
  try {
    const found = await (isPathChosen ? api.neighbours(id, path) : firstThatLeads(id));
    centre = found.id;
    byId("tag-this").disabled = false;
    draw(found);
    return true;
  } catch (error) {
    say(error.message.split("\n")[0], true);
    return false;
  }
}

async function firstThatLeads(id) {
  let found;
  for (const radio of document.querySelectorAll("input[name=path]")) {
    found = await api.neighbours(id, radio.value);
    path = radio.value;
    radio.checked = true;
    if (found.total) break;
  }
  return found;
}

async function tagThis() {
  try {
    await load([await api.document(centre)]);
    location.hash = "#tag";
  } catch (error) {
    say(error.message, true);
  }
}

function draw({ title, id, total, neighbours }) {
  byId("neighbours-summary").replaceChildren(
    total ? `${plural(total, "document")} joined to “${title || id}” by ` : `No document is joined to “${title || id}” by `,
    el("code", {}, path),
    total > neighbours.length ? `; here are the ${neighbours.length} that share most` : "");
  show(byId("graph"), total > 0);
  byId("neighbours").replaceChildren(...neighbours.map((other) => el("li", {},
    el("button", { type: "button", class: "row", onclick: () => look(other.id) },
      el("span", { class: "title" }, other.title || other.id),
      el("span", { class: "hint" }, other.id)),
    sharedThings(other))));
  // On a phone fewer, so that their titles can be read.
  const width = Math.min(byId("graph").clientWidth || WIDEST, WIDEST);
  byId("graph").replaceChildren(
    el("figcaption", {}, title || id), picture(title || id, neighbours.slice(0, width < 480 ? 7 : 14), width));
}

function sharedThings({ shared, links }) {
  const things = [
    ...links.map((link) => el("li", { class: "chip link" }, link)),
    ...Object.entries(shared).flatMap(([field, values]) =>
      values.map((value) => el("li", { class: "chip" }, el("span", { class: "field" }, field), ` ${value}`))),
  ];
  return things.length ? el("ul", { class: "chips" }, ...things) : null;
}

/** A title on at most two lines. */
function inLines(text, most) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const last = lines.length - 1;
    if (!lines[last] || `${lines[last]} ${word}`.length <= most) lines[last] = `${lines[last]} ${word}`.trim();
    else lines.push(word);
  }
  const cut = lines.slice(0, 2).map((line) => (line.length > most + 4 ? `${line.slice(0, most + 3)}…` : line));
  if (lines.length > 2) cut[1] = `${cut[1].replace(/…$/, "")}…`;
  return cut;
}

/** The document in the middle, its neighbours around it: the more they share, the stronger the line. */
function picture(title, neighbours, width) {
  const height = Math.max(0.69 * width, 320);
  const [x0, y0] = [width / 2, height / 2 - 10];
  const strengths = neighbours.map(({ shared, links }) => links.length + Object.values(shared).flat().length);
  const most = Math.max(...strengths, 1);
  const places = neighbours.map((_, index) => {
    const turn = neighbours.length % 2 ? 0 : 0.5; // never two titles side by side at the top
    const angle = (2 * Math.PI * (index + turn)) / neighbours.length - Math.PI / 2;
    const ring = neighbours.length > 7 && index % 2 ? 0.6 : 1;
    return [x0 + ring * (width / 2 - 66) * Math.cos(angle), y0 + ring * (height / 2 - 40) * Math.sin(angle)];
  });
  const lines = places.map(([x, y], index) => svg("line", {
    x1: x0, y1: y0, x2: x, y2: y, "stroke-width": (1 + (4 * strengths[index]) / most).toFixed(2),
  }));
  const nodes = places.map(([x, y], index) => {
    const { id, title } = neighbours[index];
    return svg("g", { class: "node", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, onclick: () => look(id) },
      svg("title", {}, title || id), svg("circle", { r: 8 }),
      svg("text", { y: 22 }, ...inLines(title || id, 18).map((line, at) => svg("tspan", { x: 0, dy: at ? 13 : 0 }, line))));
  });
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${title} and ${plural(neighbours.length, "neighbour")} around it; the list names them`,
  }, svg("g", { class: "lines" }, ...lines),
    svg("circle", { class: "centre", cx: x0, cy: y0, r: 14 }), ...nodes);
}
