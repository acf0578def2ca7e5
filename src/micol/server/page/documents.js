// From what a person pastes or drops to documents.

/** The first line is the title if more follows and it is not itself a paragraph. */
export function fromText(text, name) {
  const trimmed = text.trim();
  const end = trimmed.indexOf("\n");
  if (end > 0 && end <= 300) {
    return { id: name, title: trimmed.slice(0, end).trim(), abstract: trimmed.slice(end + 1).trim() };
  }
  return { id: name, text: trimmed };
}

export const titleOf = (record) =>
  record.title || (record.abstract || record.text || "").slice(0, 90) || record.id || "Untitled";

/** Pasted text may itself be a JSON document, or lines of them. */
export function fromPasted(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("{") || trimmed.startsWith("[")) {
    try {
      return fromJson(trimmed, "pasted");
    } catch {
      // Text that happens to begin with a bracket.
    }
  }
  return trimmed ? [fromText(trimmed, "pasted")] : [];
}

export async function fromFiles(files) {
  const found = [];
  for (const file of files) {
    const text = (await file.text()).replace(/^\uFEFF/, "");
    const isJson = /\.(json|jsonl|ndjson)$/i.test(file.name);
    found.push(...(isJson ? fromJson(text, file.name) : [fromText(text, file.name)]));
  }
  return found;
}

function fromJson(text, name) {
  let records;
  try {
    const whole = JSON.parse(text);
    records = Array.isArray(whole) ? whole : whole.documents || [whole];
  } catch {
    records = text.split("\n").flatMap((line, index) => {
      if (!line.trim()) return [];
      try {
        return [JSON.parse(line)];
      } catch {
        throw new Error(`${name}, line ${index + 1}: not valid JSON`);
      }
    });
  }
  return records.map((record, index) => {
    if (typeof record === "string") return fromText(record, `${name} ${index + 1}`);
    if (record === null || typeof record !== "object" || Array.isArray(record)) {
      throw new Error(`${name}, record ${index + 1}: expected an object such as {"title": "…"}`);
    }
    return { ...record, id: String(record.id ?? `${name} ${index + 1}`) };
  });
}
