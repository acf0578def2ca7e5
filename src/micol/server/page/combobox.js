// A text field with suggestions from the server, after the ARIA pattern for a combobox with a list.
import { el } from "./dom.js";

let count = 0;

/** find(text) gives [{id, name, note}]; choose(item) is told what was picked. */
export function combobox(place, { label, placeholder, find, choose }) {
  const id = `combobox-${(count += 1)}`;
  const list = el("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
  const input = el("input", {
    id, role: "combobox", placeholder, autocomplete: "off", spellcheck: "false",
    "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list",
  });
  place.replaceChildren(el("label", { for: id }, label), el("div", { class: "combobox-field" }, input, list));
  let items = [];
  let active = -1;
  let asked = 0;
  let shownFor = null; // the text that the list answers to
  let timer;

  function open(isOpen) {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) point(-1);
  }

  function point(to) {
    active = to;
    [...list.children].forEach((option, index) => {
      option.setAttribute("aria-selected", String(index === active));
      if (index === active) option.scrollIntoView({ block: "nearest" });
    });
    if (active >= 0) input.setAttribute("aria-activedescendant", list.children[active].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function pick(item) {
    asked += 1; // what is still under way comes too late
    clearTimeout(timer);
    input.value = "";
    open(false);
    choose(item);
  }

  async function refresh() {
    const mine = (asked += 1);
    const text = input.value;
    const found = await find(text).catch(() => []);
    if (mine !== asked || document.activeElement !== input) return;
    items = found;
    shownFor = text;
    list.replaceChildren(...items.map((item, index) =>
      el("li", {
        id: `${list.id}-${index}`, role: "option", "aria-selected": "false",
        onmousedown: (event) => { event.preventDefault(); pick(item); },
      }, el("span", { class: "option-name" }, item.name), item.note ? el("span", { class: "hint" }, item.note) : null)));
    open(items.length > 0);
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, 150);
  });
  input.addEventListener("focus", refresh);
  input.addEventListener("blur", () => open(false));
  input.addEventListener("keydown", async (event) => {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp" || (key === "Enter" && input.value)) {
      event.preventDefault();
      // Who types fast must not pick from the list of a moment ago.
      clearTimeout(timer);
      if (list.hidden || shownFor !== input.value) await refresh();
      if (shownFor !== input.value || !items.length) return;
      if (key === "Enter") pick(items[Math.max(active, 0)]);
      else if (key === "ArrowDown") point((active + 1) % items.length);
      else point(active > 0 ? active - 1 : items.length - 1);
    } else if (key === "Enter" && active >= 0) {
      event.preventDefault();
      pick(items[active]);
    } else if (key === "Escape") {
      open(false);
    }
  });
  return input;
}

/** A chip that can be taken away again. */
export function chip(text, kind, remove) {
  return el("li", { class: `chip ${kind}` }, el("span", {}, text),
    el("button", { type: "button", "aria-label": `Remove ${text}`, onclick: remove }, "×"));
}
