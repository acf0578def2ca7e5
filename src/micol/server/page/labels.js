// The second view: all labels, and new ones with the documents that take them.
import * as api from "./api.js";
import { chip, combobox } from "./combobox.js";
import { titleOf } from "./documents.js";
import { byId, debounced, el, plural, say, show } from "./dom.js";
import { limit, loadedDocuments, suggestAgain } from "./tag.js";
import { forgetLabels } from "./why.js";

const PAGE = 100;
let parents = [];
let last = null;

export function start(model) {
  combobox(byId("parent"), {
    label: "Below", placeholder: "Search a parent, if it has one…", find: findLabel,
    choose: ({ id, name }) => {
      if (!parents.some((parent) => parent.id === id)) parents.push({ id, name });
      drawParents();
    },
  });
  show(byId("token-field"), model.changes === "token");
  show(byId("changes-off"), model.changes === "off");
  byId("add").disabled = model.changes === "off";
  byId("new-label").addEventListener("submit", add);
  byId("undo").addEventListener("click", undo);
  byId("label-search").addEventListener("input", debounced(drawLabels, 200));
}

const token = () => byId("token").value;

async function findLabel(text) {
  const { labels } = await api.labels({ search: text, limit: 12 });
  return labels.map(({ id, names }) => ({ id, name: names[0], note: id }));
}

function drawParents() {
  byId("parent-chips").replaceChildren(...parents.map(({ id, name }) => chip(name, "include", () => {
    parents = parents.filter((parent) => parent.id !== id);
    drawParents();
  })));
}

export async function drawLabels() {
  try {
    const { total, labels } = await api.labels({ search: byId("label-search").value, limit: PAGE });
    byId("label-count").textContent = total > PAGE ? `${plural(total, "label")}, the first ${PAGE} shown` : plural(total, "label");
    byId("label-list").replaceChildren(...labels.map(({ id, names, description, children }) =>
      el("li", {},
        el("span", { class: "name" }, names[0], names.length > 1 ? el("span", { class: "hint" }, ` ${names.slice(1).join(", ")}`) : null),
        el("code", {}, id),
        description ? el("span", { class: "description" }, description) : null,
        children ? el("span", { class: "hint" }, plural(children, "label") + " below") : null)));
  } catch (error) {
    say(error.message, true);
  }
}

const slug = (name) => name.trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "label";

async function add(event) {
  event.preventDefault();
  const name = byId("label-name").value;
  const others = byId("label-names").value.split(";").map((other) => other.trim()).filter(Boolean);
  const label = {
    id: byId("label-id").value.trim() || slug(name), names: [name, ...others],
    description: byId("label-description").value, parents: parents.map(({ id }) => id),
  };
  byId("add").disabled = true;
  try {
    await api.addLabel(label, token());
    last = { id: label.id, name };
    forgetLabels();
    for (const id of ["label-name", "label-names", "label-description", "label-id"]) byId(id).value = "";
    parents = [];
    drawParents();
    await suggestAgain();
    drawTakers();
    say(`${name} was added.`);
    await drawLabels();
  } catch (error) {
    say(error.message, true);
  } finally {
    byId("add").disabled = false;
  }
}

function drawTakers() {
  const documents = loadedDocuments();
  const takers = documents
    .map(({ record, labels }) => ({ record, rank: (labels || []).findIndex(({ id }) => id === last.id), labels }))
    .filter(({ rank }) => rank >= 0)
    .sort((one, other) => one.rank - other.rank);
  show(byId("takers"), true);
  byId("takers-summary").textContent = documents.length
    ? `${takers.length} of ${plural(documents.length, "loaded document")} take “${last.name}” among their first ${limit()} labels.`
    : `“${last.name}” is in use. Load documents in the first view to see which of them take it.`;
  byId("takers-list").replaceChildren(...takers.map(({ record, rank, labels }) =>
    el("li", {}, el("div", { class: "row" },
      el("span", { class: "title" }, titleOf(record)),
      el("span", { class: "hint" }, `rank ${rank + 1}, ${labels[rank].score.toFixed(2)}`)))));
}

async function undo() {
  try {
    await api.removeLabel(last.id, token());
    forgetLabels();
    show(byId("takers"), false);
    await suggestAgain();
    await drawLabels();
    say(`${last.name} was removed.`);
    byId("label-name").focus();
  } catch (error) {
    say(error.message, true);
  }
}
