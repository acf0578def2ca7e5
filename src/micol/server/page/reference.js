// The API's description, drawn from openapi.json.
import { byId, el } from "./dom.js";
import * as theme from "./theme.js";

theme.start();
const description = await (await fetch("/openapi.json")).json();

const resolved = (schema) =>
  schema?.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)] : schema;

/** A schema as an example of what it describes. */
function sample(given, depth = 0) {
  const schema = resolved(given) || {};
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.examples) return schema.examples[0];
  const alternatives = schema.anyOf || schema.oneOf;
  if (alternatives) return sample(alternatives[0], depth);
  if (schema.type === "array") return depth > 5 ? [] : [sample(schema.items || schema.prefixItems?.[0], depth + 1)];
  if (schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, value]) => [name, sample(value, depth + 1)]));
  }
  return { string: "…", integer: 0, number: 0, boolean: false, object: {}, null: null }[schema.type] ?? null;
}

const pretty = (value) => el("pre", {}, JSON.stringify(value, null, 2));

function parameters(list) {
  return el("ul", { class: "reasons" }, ...list.map(({ name, in: place, description: about, required }) =>
    el("li", {}, el("code", {}, name), ` in the ${place}${required ? "" : ", optional"}${about ? `: ${about}` : ""}`)));
}

function operation(method, path, details) {
  const body = details.requestBody?.content;
  const kinds = Object.keys(body || {});
  const answer = Object.entries(details.responses).find(([status]) => status.startsWith("2"));
  const schema = answer?.[1].content?.["application/json"]?.schema;
  return el("details", { class: "operation" },
    el("summary", {}, el("code", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path),
      el("span", { class: "hint" }, details.description || details.summary || "")),
    el("div", {},
      details.parameters ? el("div", {}, el("h3", {}, "Parameters"), parameters(details.parameters)) : null,
      body ? el("div", {}, el("h3", {}, `Body (${kinds.join(" or ")})`), pretty(sample(body[kinds[0]].schema))) : null,
      schema ? el("div", {}, el("h3", {}, `Answer ${answer[0]}`), pretty(sample(schema))) : null,
      el("p", { class: "hint" }, `Answers: ${Object.keys(details.responses).join(", ")}`)));
}

const groups = new Map();
for (const [path, operations] of Object.entries(description.paths)) {
  for (const [method, details] of Object.entries(operations)) {
    const tag = details.tags?.[0] || "more";
    groups.set(tag, [...(groups.get(tag) || []), operation(method, path, details)]);
  }
}
byId("main").append(el("p", {}, description.info.description.replace(/[`\n]/g, (sign) => (sign === "\n" ? " " : ""))),
  ...[...groups].map(([tag, operations]) =>
    el("section", { class: "card" }, el("h2", {}, tag[0].toUpperCase() + tag.slice(1)), ...operations)));
document.documentElement.dataset.ready = "true";
