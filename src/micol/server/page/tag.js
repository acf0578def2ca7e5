// The first view: documents, their text, and the labels suggested for them.
import * as api from "./api.js";
import { chip, combobox } from "./combobox.js";
import { fromFiles, fromPasted, titleOf } from "./documents.js";
import { byId, el, plural, say, show, walkable } from "./dom.js";
import { exportCsv, exportJson } from "./exporting.js";
import { marked } from "./highlight.js";
import { why } from "./why.js";

const AT_A_TIME = 16;
const EXAMPLE = `A graph database for citation networks
We store scholarly papers, their authors and the references between them as a graph, and answer queries about paths in it within milliseconds. A web page draws the neighbourhood of any paper.`;

// Each document: {record, labels, text, isExplained}; labels is null until they are known.
const state = { model: null, documents: [], current: 0, include: [], exclude: [], open: null };

export const loadedDocuments = () => state.documents;
export const limit = () => Number(byId("limit").value);
export const currentRecord = () => state.documents[state.current]?.record;

export function start(model) {
  state.model = model;
  byId("metadata-fields").replaceChildren(...model.metadata.flatMap((name) => [
    el("label", { for: `metadata-${name}` }, name[0].toUpperCase() + name.slice(1), el("span", { class: "hint" }, " separated by semicolons")),
    el("input", { id: `metadata-${name}`, "data-field": name }),
  ]));
  combobox(byId("branch"), {
    label: "Only in a branch", placeholder: "Search a branch…", find: findBranch,
    choose: (item) => filters.add("include", item),
  });
  show(byId("branch"), model.hierarchy);
  byId("suggest").addEventListener("click", suggestPasted);
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) suggestPasted();
  });
  byId("text").addEventListener("paste", () => setTimeout(suggestPasted));
  byId("example").addEventListener("click", () => {
    byId("text").value = EXAMPLE;
    suggestPasted();
  });
  byId("file").addEventListener("change", (event) => openFiles(event.target.files));
  byId("edit").addEventListener("click", () => {
    show(byId("writing"), true);
    byId("text").focus();
  });
  byId("clear").addEventListener("click", clear);
  byId("limit").addEventListener("change", suggestAgain);
  byId("threshold").addEventListener("input", () => {
    byId("threshold-value").textContent = Number(byId("threshold").value).toFixed(2);
    drawSuggestions();
  });
  byId("export-json").addEventListener("click", () => exportJson(tagged()));
  byId("export-csv").addEventListener("click", () => exportCsv(tagged(), titleOf));
  walkable(byId("suggestions"), "button.row");
  walkable(byId("documents"), "button.row");
  acceptDrops();
}

async function findBranch(text) {
  const { labels } = await api.labels({ search: text, branches: true, limit: 12 });
  return labels.map(({ id, names, children }) => ({ id, name: names[0], note: plural(children, "label") }));
}

export const filters = {
  add(kind, { id, name }) {
    for (const other of ["include", "exclude"]) state[other] = state[other].filter((branch) => branch.id !== id);
    state[kind].push({ id, name });
    this.draw();
    suggestAgain();
  },
  remove(kind, id) {
    state[kind] = state[kind].filter((branch) => branch.id !== id);
    this.draw();
    suggestAgain();
  },
  draw() {
    byId("chips").replaceChildren(...["include", "exclude"].flatMap((kind) => state[kind].map(({ id, name }) =>
      chip(kind === "include" ? name : `not ${name}`, kind, () => this.remove(kind, id)))));
  },
};

function suggestPasted() {
  const records = fromPasted(byId("text").value);
  if (!records.length) {
    say("Paste a document first.");
    byId("text").focus();
    return;
  }
  const fields = byId("metadata-fields").querySelectorAll("input");
  if (records.length === 1) {
    for (const field of fields) {
      const values = field.value.split(";").map((value) => value.trim()).filter(Boolean);
      if (values.length) records[0][field.dataset.field] = values;
    }
  }
  load(records);
}

async function openFiles(files) {
  if (!files.length) return;
  try {
    await load(await fromFiles(files));
  } catch (error) {
    say(error.message, true);
  }
  byId("file").value = "";
}

function acceptDrops() {
  let depth = 0;
  const over = (isOver) => show(byId("drop"), isOver);
  addEventListener("dragenter", (event) => { event.preventDefault(); depth += 1; over(true); });
  addEventListener("dragleave", () => { depth -= 1; over(depth > 0); });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    over(false);
    if (event.dataTransfer.files.length) openFiles(event.dataTransfer.files);
    else if (event.dataTransfer.getData("text")) {
      byId("text").value = event.dataTransfer.getData("text");
      suggestPasted();
    }
    location.hash = "#tag";
  });
}

/** Takes documents in the place of those before, and tags them. */
export async function load(records) {
  state.documents = records.map((record) => ({ record, labels: null, isExplained: false }));
  state.current = 0;
  state.open = null;
  const isOne = records.length === 1;
  if (isOne) byId("text").value = [records[0].title, records[0].abstract || records[0].text].filter(Boolean).join("\n");
  show(byId("writing"), false);
  show(byId("list"), !isOne);
  show(byId("reading"), true);
  await suggestAgain();
}

function clear() {
  state.documents = [];
  for (const id of ["list", "reading"]) show(byId(id), false);
  show(byId("writing"), true);
  byId("text").value = "";
  draw();
  byId("text").focus();
}

function question(documents, explain) {
  return {
    documents: documents.map(({ record }) => withoutOthers(record)), limit: limit(), explain,
    include: state.include.map(({ id }) => id), exclude: state.exclude.map(({ id }) => id),
  };
}

/** What a document is tagged by; its gold labels and the like stay here. */
function withoutOthers(record) {
  const names = ["id", "title", "abstract", "text", "citations", ...state.model.metadata];
  return Object.fromEntries(names.filter((name) => record[name] !== undefined).map((name) => [name, record[name]]));
}

let round = 0;

/** Tags all loaded documents anew: the one that is shown first, with reasons. */
export async function suggestAgain() {
  const mine = (round += 1);
  const documents = state.documents;
  if (!documents.length) return draw();
  byId("results").setAttribute("aria-busy", "true");
  try {
    for (const document of documents) document.isExplained = false;
    await explainCurrent();
    if (mine !== round) return undefined;
    const others = documents.filter((_, index) => index !== state.current);
    for (let start = 0; start < others.length; start += AT_A_TIME) {
      const some = others.slice(start, start + AT_A_TIME);
      const { results } = await api.suggest(question(some, false));
      if (mine !== round) return undefined;
      results.forEach(({ labels }, index) => { some[index].labels = labels; });
      showProgress(1 + start + some.length, documents.length);
      drawDocuments();
    }
    say(`${plural(documents.length, "document")} tagged.`, false, documents.length === 1);
  } catch (error) {
    if (mine === round) say(error.message, true);
  } finally {
    if (mine === round) {
      byId("results").removeAttribute("aria-busy");
      showProgress(1, 1);
      draw();
    }
  }
  return undefined;
}

async function explainCurrent() {
  const document = state.documents[state.current];
  if (!document.isExplained) {
    const { results } = await api.suggest(question([document], true));
    Object.assign(document, { labels: results[0].labels, text: results[0].text, isExplained: true });
  }
  if (state.model.corpus && document.isInCorpus === undefined) {
    document.isInCorpus = await api.hasDocument(document.record.id).catch(() => false);
  }
  draw();
}

function showProgress(done, total) {
  const progress = byId("progress");
  show(progress, done < total);
  progress.max = total;
  progress.value = done;
}

const tagged = () => state.documents.filter(({ labels }) => labels).map(({ record, labels }) => ({ record, labels: labels.filter(isShown) }));
const isShown = ({ strength }) => strength >= Number(byId("threshold").value);

function draw() {
  for (const id of ["export-json", "export-csv"]) byId(id).disabled = !state.documents.some(({ labels }) => labels);
  drawDocuments();
  drawText();
  drawSuggestions();
}

function drawDocuments() {
  const focused = byId("documents").contains(document.activeElement);
  byId("list-title").textContent = plural(state.documents.length, "document");
  byId("documents").replaceChildren(...state.documents.map(({ record, labels }, index) =>
    el("li", {}, el("button", {
      type: "button", class: "row", "aria-current": index === state.current ? "true" : undefined,
      onclick: () => choose(index),
    }, el("span", { class: "title" }, titleOf(record)),
      el("span", { class: "hint" }, labels ? labels.filter(isShown).slice(0, 3).map(({ name }) => name).join(" · ") || "no label" : "…")))));
  if (focused) byId("documents").querySelector("[aria-current]")?.focus();
}

async function choose(index) {
  state.current = index;
  state.open = null;
  try {
    await explainCurrent();
  } catch (error) {
    say(error.message, true);
  }
}

function drawText(explanation) {
  const document = state.documents[state.current];
  if (!document) return;
  const { record } = document;
  const text = document.text ?? [record.title, record.abstract || record.text].filter(Boolean).join("\n");
  const shown = byId("document-text");
  shown.replaceChildren(...marked(text, explanation, (record.title || "").length));
  const metadata = state.model.metadata.filter((name) => record[name]?.length);
  byId("document-metadata").replaceChildren(...metadata.flatMap((name) => [
    el("dt", {}, name), el("dd", {}, [].concat(record[name]).join(", "))]));
  show(byId("to-network"), document.isInCorpus === true);
}

function drawSuggestions() {
  const document = state.documents[state.current];
  const labels = (document?.labels || []).filter(isShown);
  byId("suggestions").replaceChildren(...labels.map((label, index) => suggestionRow(document, label, index)));
  show(byId("empty"), !labels.length);
  byId("empty-words").textContent = !document
    ? "Labels appear here, best first. Choose one to see why it was suggested."
    : document.labels ? "No label fits this document and these filters." : "One moment…";
  const open = labels.find(({ id }) => id === state.open);
  drawText(open?.explanation);
  drawDocuments();
}

function suggestionRow(document, label, index) {
  const panel = el("div", { class: "why", id: `why-${index}`, hidden: true });
  const button = el("button", {
    type: "button", class: "row", "aria-expanded": "false", "aria-controls": panel.id,
    onclick: () => toggle(),
    onmouseenter: () => { if (!state.open) drawText(label.explanation); },
    onmouseleave: () => { if (!state.open) drawText(); },
  },
    el("span", { class: "rank" }, String(index + 1)),
    el("span", { class: "name" }, label.name, label.path?.length ? el("span", { class: "hint" }, ` ${label.path.join(" › ")}`) : null),
    el("span", { class: "score" }, label.score.toFixed(2)),
    el("span", { class: "bar", "aria-hidden": "true" }, el("span", { "width%": 100 * label.strength })));
  const item = el("li", {}, button, panel);

  async function open() {
    button.setAttribute("aria-expanded", "true");
    item.classList.add("open");
    panel.hidden = false;
    try {
      panel.replaceChildren(await why(label, document.text || "", filters));
    } catch (error) {
      say(error.message, true);
    }
  }

  function toggle() {
    const isOpening = state.open !== label.id;
    state.open = isOpening ? label.id : null;
    for (const other of byId("suggestions").querySelectorAll("li.open")) {
      other.classList.remove("open");
      other.querySelector(".why").hidden = true;
      other.querySelector(".row").setAttribute("aria-expanded", "false");
    }
    if (isOpening) open();
    drawText(isOpening ? label.explanation : undefined);
  }

  if (state.open === label.id) open();
  return item;
}
