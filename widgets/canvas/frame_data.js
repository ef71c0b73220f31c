// What a view draws, as text: the columns of its frame, a table for those of one length and name.

import { saveFile } from "./snapshot.js";

// Columns that are places in a list of names.
const FRAME_NAMES = {
  row: "names", lane: "names", other: "names", kind: "kinds", tag: "tags", task: "tasks", owner: "owners",
};
const DRAWN_ONLY = ["hue", "texture"]; // columns that say how a mark looks, not what it is

export function saveData(card) {
  saveFile(new Blob([frameText(card.frame || {}, card.figures)], { type: "text/csv" }), `${card.name}.csv`);
}

// CSV: each table under a heading; an empty line between two.
function frameText(frame, figures) {
  const lines = (cells) => cells.map(csvCell).join(",");
  const tables = frameTables(frame, figures).map(({ head, rows }) => [head, ...rows].map(lines).join("\n"));
  return `${tables.join("\n\n")}\n`;
}

// The figures above the view, then what its frame holds, as tables of `head` and `rows`.
export function frameTables(frame, figures) {
  const told = [...figures.children].map((pair) => [pair.children[0].textContent, pair.children[1].textContent]);
  const tables = [{ head: ["figure", "value"], rows: told }];
  const found = new Map();
  for (const [key, values] of Object.entries(frame)) {
    if (!ArrayBuffer.isView(values) || !values.length) continue;
    if (DRAWN_ONLY.includes(key)) continue;
    const cut = key.indexOf("_"), group = cut > 0 ? key.slice(0, cut) : "";
    const place = `${group} ${values.length}`;
    if (!found.has(place)) found.set(place, []);
    found.get(place).push([cut > 0 ? key.slice(cut + 1) : key, values]);
  }
  for (const [place, columns] of found) {
    const group = place.split(" ")[0], count = columns[0][1].length;
    const lists = columns.map(([name]) => frame[FRAME_NAMES[name]] || frame[`${name}s`]);
    if (!group && frame.names?.length === count) {
      columns.unshift(["name", frame.names]);
      lists.unshift(null);
    }
    const rows = Array.from({ length: count }, (_, i) => columns.map(([, values], c) => {
      const list = lists[c];
      return Array.isArray(list) && list[values[i]] !== undefined ? list[values[i]] : values[i];
    }));
    tables.push({ head: columns.map(([name]) => (group ? `${group} ${name}` : name)), rows });
  }
  return tables;
}

function csvCell(value) {
  const text = String(value);
  // A cell that a spreadsheet would compute is kept text.
  const safe = typeof value === "string" && /^[=+@\t-]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
