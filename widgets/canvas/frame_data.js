// What a view draws, as text: the columns of its frame, a table for those of one length and name.

import { saveFile } from "./snapshot.js";

// Columns that are places in a list of names.
const FRAME_NAMES = {
  row: "names", lane: "names", other: "names", kind: "kinds", tag: "tags", task: "tasks", owner: "owners",
};

export function saveData(card) {
  saveFile(new Blob([frameText(card.frame || {}, card.figures)], { type: "text/csv" }), `${card.name}.csv`);
}

// CSV: the figures above the view, then each table under a heading; an empty line between two.
function frameText(frame, figures) {
  const told = [...figures.children].map((pair) => [pair.children[0].textContent, pair.children[1].textContent]);
  const tables = [["figure,value", ...told.map((pair) => pair.map(csvCell).join(","))]];
  const found = new Map();
  for (const [key, values] of Object.entries(frame)) {
    if (!ArrayBuffer.isView(values) || !values.length) continue;
    const cut = key.indexOf("_"), group = cut > 0 ? key.slice(0, cut) : "";
    const place = `${group} ${values.length}`;
    if (!found.has(place)) found.set(place, []);
    found.get(place).push([cut > 0 ? key.slice(cut + 1) : key, values]);
  }
  for (const [place, columns] of found) {
    const group = place.split(" ")[0], count = columns[0][1].length;
    const lists = columns.map(([name]) => frame[FRAME_NAMES[name]]);
    const lines = Array.from({ length: count }, (_, i) => columns.map(([, values], c) => {
      const list = lists[c];
      return csvCell(Array.isArray(list) && list[values[i]] !== undefined ? list[values[i]] : values[i]);
    }).join(","));
    tables.push([columns.map(([name]) => csvCell(group ? `${group} ${name}` : name)).join(","), ...lines]);
  }
  return `${tables.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function csvCell(value) {
  const text = String(value);
  // A cell that a spreadsheet would compute is kept text.
  const safe = typeof value === "string" && /^[=+@\t-]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
