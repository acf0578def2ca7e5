// The third view: the corpus' network around a document.
import * as api from "./api.js";
import { combobox } from "./combobox.js";
import { byId, el, plural, say, show, svg } from "./dom.js";
import { load } from "./tag.js";

const SIZE = 560;
const DRAWN = 16;
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

function follow(name) {
  path = name;
  isPathChosen = true;
  if (centre) look(centre);
}

/** Shows the neighbours of a document, if the corpus has it. */
export async function look(id) {
  try {
    const found = await (isPathChosen ? api.neighbours(id, path) : firstThatLeads(id));
    centre = found.id;
    byId("tag-this").disabled = false;
    draw(found);
  } catch (error) {
    say(error.message.split("\n")[0], true);
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
  byId("graph").replaceChildren(picture(title || id, neighbours.slice(0, DRAWN)));
}

function sharedThings({ shared, links }) {
  const things = [
    ...links.map((link) => el("li", { class: "chip link" }, link)),
    ...Object.entries(shared).flatMap(([field, values]) =>
      values.map((value) => el("li", { class: "chip" }, el("span", { class: "field" }, field), ` ${value}`))),
  ];
  return things.length ? el("ul", { class: "chips" }, ...things) : null;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The document in the middle, its neighbours in two rings: the more they share, the stronger the line. */
function picture(title, neighbours) {
  const middle = SIZE / 2;
  const strengths = neighbours.map(({ shared, links }) => links.length + Object.values(shared).flat().length);
  const most = Math.max(...strengths, 1);
  const places = neighbours.map((_, index) => {
    const angle = (2 * Math.PI * index) / neighbours.length - Math.PI / 2;
    const radius = neighbours.length > 8 && index % 2 ? 155 : 215;
    return [middle + radius * Math.cos(angle), middle + radius * 0.94 * Math.sin(angle)];
  });
  const lines = places.map(([x, y], index) => svg("line", {
    x1: middle, y1: middle, x2: x, y2: y, "stroke-width": (1 + (4 * strengths[index]) / most).toFixed(2),
  }));
  const nodes = places.map(([x, y], index) => {
    const { id, title } = neighbours[index];
    return svg("g", { class: "node", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, onclick: () => look(id) },
      svg("title", {}, title || id), svg("circle", { r: 9 }),
      svg("text", { y: 24 }, cut(title || id, 20)));
  });
  return svg("svg", {
    viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img",
    "aria-label": `${cut(title, 80)} and ${plural(neighbours.length, "neighbour")} around it; the list names them`,
  }, svg("g", { class: "lines" }, ...lines), ...nodes,
    svg("g", { class: "centre", transform: `translate(${middle} ${middle})` },
      svg("circle", { r: 15 }), svg("text", { y: 34 }, cut(title, 36))));
}
