// A text with the reasons for a label marked in it.
import { el } from "./dom.js";

/** Offsets are counted in characters by the server and in 16-bit units by JavaScript. */
function unitOffsets(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (offset) => offset;
  const starts = [];
  let at = 0;
  for (const character of text) {
    starts.push(at);
    at += character.length;
  }
  starts.push(at);
  return (offset) => starts[Math.min(offset, starts.length - 1)];
}

function wordPlaces(text, words) {
  if (!words.length) return [];
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<!\\p{L})(?:${escaped.join("|")})(?!\\p{L})`, "giu");
  return [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]);
}

/** Pieces of the text between all places where a mark, or the title, begins or ends. */
export function marked(text, explanation = {}, titleLength = 0) {
  const unit = unitOffsets(text);
  const places = [];
  const add = (kind, start, end) => places.push({ kind, start, end });
  for (const [start, end] of explanation.named_at || []) add("named", unit(start), unit(end));
  if (explanation.best_sentence) add("sentence", ...explanation.best_sentence.map(unit));
  for (const [start, end] of wordPlaces(text, explanation.shared_words || [])) add("word", start, end);
  if (titleLength) add("heading", 0, titleLength);
  const cuts = new Set([0, text.length]);
  for (const place of places) cuts.add(place.start).add(place.end);
  const bounds = [...cuts].sort((a, b) => a - b);
  return bounds.slice(1).map((end, index) => {
    const start = bounds[index];
    const kinds = places.filter((place) => place.start <= start && place.end >= end).map((place) => place.kind);
    const piece = text.slice(start, end);
    if (!kinds.length) return document.createTextNode(piece);
    return el(kinds.every((kind) => kind === "heading") ? "span" : "mark", { class: [...new Set(kinds)].join(" ") }, piece);
  });
}

export function sentenceOf(text, [start, end]) {
  const unit = unitOffsets(text);
  return text.slice(unit(start), unit(end)).trim();
}
