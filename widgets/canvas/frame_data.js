// What a view draws, as text: from its host all of it, else the columns of its frame, a table for
// those of one length and name.

import { saveFile } from "./snapshot.js";

// Columns that are places in a list of names.
const FRAME_NAMES = {
  row: "names", lane: "names", other: "names", kind: "kinds", tag: "tags", task: "tasks", owner: "owners",
};
const DRAWN_ONLY = ["hue", "texture", "modelled_lane"]; // columns that say how a mark looks, not what it is

const PATIENCE = 5000; // milliseconds that a host may take to answer; one that is gone never does

// The host is asked for all that the view is drawn from, under the names of its axes; a page without
// one saves what is drawn.
export function saveData(card) {
  const { model, name, figures } = card, before = figuresTable(figures);
  const save = (text) => saveFile(new Blob([text], { type: "text/csv" }), `${name}.csv`);
  const drawn = () => save(frameText(card.frame || {}, figures));
  if (!model.get("options").hosted) return drawn();
  const turn = Date.now();
  const finish = (text) => {
    clearTimeout(waiting);
    model.off?.("change:table", heard);
    if (text) save(`${tableText(before)}\n\n${text}`); else drawn();
  };
  const heard = () => { if (model.get("table")?.turn === turn) finish(model.get("table").text); };
  const waiting = setTimeout(finish, PATIENCE);
  model.on("change:table", heard);
  model.set("command", { do: "table", turn });
  return model.save_changes();
}

function figuresTable(figures) {
  const rows = [...figures.children].map((pair) => [pair.children[0].textContent, pair.children[1].textContent]);
  return { head: ["figure", "value"], rows };
}

function tableText({ head, rows }) {
  return [head, ...rows].map((cells) => cells.map(csvCell).join(",")).join("\n");
}

// CSV: each table under a heading; an empty line between two.
function frameText(frame, figures) {
  return `${frameTables(frame, figures).map(tableText).join("\n\n")}\n`;
}

// The figures above the view, then what its frame holds, as tables of `head` and `rows`.
export function frameTables(frame, figures) {
  const tables = [figuresTable(figures)];
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
