// Elements are built, never parsed: whatever a label or a text holds stays text.

export const byId = (id) => document.getElementById(id);

/** el("a", {href: "#", class: "x", onclick: f, dataset: {…}}, "text", child) */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "width%") element.style.width = `${value}%`;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function show(element, isShown) {
  element.hidden = !isShown;
}

let statusTimer;

/** Tells a person what happened; errors stay until the next message, what can be seen anyway is only spoken. */
export function say(message, isError = false, isOnlySpoken = false) {
  const status = byId("status");
  clearTimeout(statusTimer);
  status.textContent = message;
  status.classList.toggle("error", isError);
  status.classList.toggle("spoken", isOnlySpoken);
  if (message && !isError) statusTimer = setTimeout(() => say(""), 3000);
}

/** Up, Down, Home and End walk through the buttons of a list. */
export function walkable(list, selector) {
  list.addEventListener("keydown", (event) => {
    const items = [...list.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined || !items[to]) return;
    event.preventDefault();
    items[to].focus();
  });
}

export function debounced(work, milliseconds) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
