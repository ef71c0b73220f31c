// What a view draws as tables to be read: for a screen reader, or whoever wants the numbers.

import { make } from "../page/nodes.js";
import { frameTables } from "./frame_data.js";

const TABLE_ROWS = 200; // shown of one table
const TABLE_STYLE = `
dialog.data{font:14px/1.4 var(--font,sans-serif);color:var(--ink);background:var(--paper);border:1px solid var(--line);
 border-radius:10px;padding:18px 22px;max-width:min(92vw,1100px);max-height:84vh;overflow:auto}
dialog.data::backdrop{background:rgba(0,0,0,.3)}
dialog.data h2{font-size:16px;margin:0 0 8px}
dialog.data button{font:inherit;color:var(--ink);background:transparent;border:1px solid var(--line);
 border-radius:6px;padding:3px 12px;cursor:pointer}
dialog.data table{border-collapse:collapse;margin:12px 0;font-size:12px;font-variant-numeric:tabular-nums}
dialog.data caption{text-align:left;color:var(--faint);padding:2px 0}
dialog.data :is(th,td){text-align:left;padding:2px 16px 2px 0;white-space:nowrap}`;

export function showTable(card) {
  const sheet = make("dialog", "data", card.root);
  make("style", "", sheet, TABLE_STYLE);
  sheet.setAttribute("aria-label", "Data of this view");
  const shut = make("button", "", null, "Close");
  shut.type = "button";
  shut.onclick = () => sheet.close();
  make("h2", "", sheet, card.title.firstChild.textContent);
  sheet.append(shut);
  for (const { head, rows } of frameTables(card.frame || {}, card.figures)) {
    const table = make("table", "", sheet), count = rows.length.toLocaleString("en");
    const shown = rows.length > TABLE_ROWS ? `the first ${TABLE_ROWS} of ${count} rows; Save data (CSV) has all` : "";
    make("caption", "", table, shown || (rows.length === 1 ? "1 row" : `${count} rows`));
    const line = make("tr", "", make("thead", "", table));
    for (const name of head) make("th", "", line, name).scope = "col";
    const body = make("tbody", "", table);
    for (const row of rows.slice(0, TABLE_ROWS)) {
      const cells = make("tr", "", body);
      for (const value of row) make("td", "", cells, tableCell(value));
    }
  }
  sheet.addEventListener("close", () => sheet.remove());
  sheet.addEventListener("keydown", (event) => event.stopPropagation()); // the page's keys are not meant
  sheet.showModal();
}

// Times and shares to six digits: a table is for reading.
function tableCell(value) {
  if (Number.isNaN(value)) return "–";
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
}
