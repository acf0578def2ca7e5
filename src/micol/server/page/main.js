import * as api from "./api.js";
import { byId, plural, say, show } from "./dom.js";
import * as labels from "./labels.js";
import * as network from "./network.js";
import * as tag from "./tag.js";
import * as theme from "./theme.js";

const VIEWS = ["tag", "labels", "network"];

function showView() {
  const wanted = location.hash.slice(1);
  const view = VIEWS.includes(wanted) ? wanted : VIEWS[0];
  for (const name of VIEWS) {
    show(byId(`view-${name}`), name === view);
    const link = document.querySelector(`.views a[href="#${name}"]`);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "labels") labels.drawLabels();
  if (view === "network" && tag.currentRecord() && model.corpus) showOwnNetwork(tag.currentRecord().id);
}

/** Of a document that was pasted there may be none: then the view stays as it is. */
async function showOwnNetwork(id) {
  if (await api.hasDocument(id).catch(() => false)) network.look(id);
}

let model;
theme.start();
try {
  model = await api.model();
  document.title = `${model.name} · micol`;
  byId("model").textContent = `${model.name} · ${plural(model.labels, "label")}`;
  tag.start(model);
  labels.start(model);
  network.start(model);
  addEventListener("hashchange", showView);
  showView();
  document.documentElement.dataset.ready = "true";
} catch (error) {
  say(error.message, true);
}
