// Light, dark, or as the system has it.
import { byId } from "./dom.js";

const THEMES = [["", "◐", "as the system"], ["light", "○", "light"], ["dark", "●", "dark"]];

function stored() {
  try {
    return localStorage.getItem("theme") || "";
  } catch {
    return "";
  }
}

function apply(theme) {
  const [name, sign, words] = THEMES.find(([name]) => name === theme) || THEMES[0];
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = sign;
  byId("theme").setAttribute("aria-label", `Theme: ${words}`);
  byId("theme").title = `Theme: ${words}`;
}

export function start() {
  apply(stored());
  byId("theme").addEventListener("click", () => {
    const at = THEMES.findIndex(([name]) => name === document.documentElement.dataset.theme);
    const next = THEMES[(at + 1) % THEMES.length][0];
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Where nothing may be kept, the choice lasts as long as the page.
    }
    apply(next);
  });
}
