// Results as files.

function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function exportJson(documents) {
  const lines = documents.map(({ record, labels }) => ({
    id: record.id,
    labels: labels.map(({ id, name, score }) => ({ id, name, score })),
  }));
  download("labels.json", "application/json", `${JSON.stringify(lines, null, 2)}\n`);
}

/** A cell that a spreadsheet would take for a formula is kept as text. */
function cell(value) {
  const text = String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function exportCsv(documents, titleOf) {
  const rows = [["document", "title", "rank", "label", "name", "score"]];
  for (const { record, labels } of documents) {
    labels.forEach((label, index) =>
      rows.push([record.id, titleOf(record), index + 1, label.id, label.name, label.score]));
  }
  download("labels.csv", "text/csv", rows.map((row) => `${row.map(cell).join(",")}\r\n`).join(""));
}
