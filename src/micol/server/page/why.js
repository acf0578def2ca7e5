// Why a label was suggested, in words, bars and places of the text.
import * as api from "./api.js";
import { el, plural } from "./dom.js";
import { sentenceOf } from "./highlight.js";

const known = new Map(); // labels by id: they change only by an edit, which forgets them

export const forgetLabels = () => known.clear();

async function labelOf(id) {
  if (!known.has(id)) known.set(id, await api.label(id));
  return known.get(id);
}

export async function why(suggestion, text, filters) {
  const label = await labelOf(suggestion.id);
  const explanation = suggestion.explanation || {};
  const panel = el("div", {});
  for (const path of label.paths) panel.append(breadcrumb(path, label));
  if (label.description) panel.append(el("p", { class: "description" }, label.description));
  if (label.names.length > 1) {
    panel.append(el("p", { class: "hint" }, `Also called ${label.names.slice(1).join(", ")}`));
  }
  panel.append(reasons(explanation, text));
  const contributions = Object.entries(explanation.contributions || {})
    .filter(([, value]) => Math.abs(value) >= 0.005); // what adds nothing need not be told
  if (contributions.length) panel.append(contributionBars(contributions));
  if ((explanation.neighbours || []).length) panel.append(neighbourList(explanation.neighbours));
  if (label.children || label.paths.length) panel.append(branchButtons(label, filters));
  return panel;
}

function breadcrumb(path, label) {
  return el("p", { class: "breadcrumb", "aria-label": "Place in the hierarchy" },
    ...path.flatMap((place) => [el("span", {}, place.name), el("span", { "aria-hidden": "true" }, " › ")]),
    el("strong", {}, label.names[0]));
}

function reasons(explanation, text) {
  const list = el("ul", { class: "reasons" });
  const named = (explanation.named_at || []).length;
  const words = explanation.shared_words || [];
  if (named) list.append(el("li", {}, el("mark", { class: "named" }, "Named"), ` in the text ${named === 1 ? "once" : plural(named, "time")}`));
  if (explanation.best_sentence) {
    const sentence = sentenceOf(text, explanation.best_sentence);
    list.append(el("li", {}, el("mark", { class: "sentence" }, "Best sentence"), ` “${sentence.length > 160 ? `${sentence.slice(0, 160)}…` : sentence}”`));
  }
  if (words.length) {
    list.append(el("li", {}, "Shares ", ...words.flatMap((word, index) => [index ? ", " : "", el("mark", { class: "word" }, word)])));
  }
  if (!list.children.length) list.append(el("li", {}, "By meaning alone: no word of it stands in the text"));
  return list;
}

function contributionBars(contributions) {
  const most = Math.max(...contributions.map(([, value]) => Math.abs(value)), 1e-9);
  const ordered = contributions.sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  return el("div", {}, el("h3", {}, "What each source adds"),
    el("ul", { class: "contributions" }, ...ordered.map(([name, value]) =>
      el("li", {}, el("span", {}, name),
        el("span", { class: "bar", "aria-hidden": "true" },
          el("span", { class: value < 0 ? "against" : "", "width%": (100 * Math.abs(value)) / most })),
        el("span", { class: "score" }, `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`)))));
}

function neighbourList(neighbours) {
  return el("div", {}, el("h3", {}, "Documents that speak for it"),
    el("ul", { class: "evidence" }, ...neighbours.map(({ id, title, via }) =>
      el("li", {}, title || id, via ? el("span", { class: "hint" }, ` ${via}`) : null))));
}

function branchButtons(label, filters) {
  const branch = label.children ? { id: label.id, name: label.names[0] } : label.paths[0].at(-1);
  return el("div", { class: "actions" },
    el("button", { type: "button", class: "quiet", onclick: () => filters.add("include", branch) }, `Only ${branch.name}`),
    el("button", { type: "button", class: "quiet", onclick: () => filters.add("exclude", branch) }, `Without ${branch.name}`));
}
