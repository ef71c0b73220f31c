// The keys of a page, as a sheet over it: "?" opens and shuts it.

import { make } from "./nodes.js";

const KEY_SHEET = [
  ["Space", "play or pause"],
  ["← →", "a step back or on; ten with Shift"],
  ["Home, End", "to the start; follow the end"],
  ["Esc", "unpin, shut"],
  ["Tab", "from control to control, and into each picture"],
  ["", "In a picture that has the focus:"],
  ["+ −, W S", "closer, farther"],
  ["← →, A D", "along what is zoomed; over cells, the pointer"],
  ["↑ ↓", "lanes"],
  ["0", "show all"],
  ["Shift + ← →", "a range from the cursor on: its table"],
  ["/", "find"],
  ["M, [ ]", "mark this moment; to the mark before, after"],
  ["Enter", "pick what the pointer is on"],
  ["L, comma, full stop", "latencies: limits put or taken away, lowered, raised"],
  ["Tab to ⋯", "how to read the view; its picture and data"],
  ["Ctrl + wheel", "zoom; the wheel alone scrolls the page"],
];
const KEY_STYLE = `
dialog.keys{font:14px/1.5 var(--font,sans-serif);color:var(--ink);background:var(--paper);
 border:1px solid var(--line);border-radius:10px;padding:18px 22px;max-width:460px}
dialog.keys::backdrop{background:rgba(0,0,0,.3)}
dialog.keys h2{font-size:16px;margin:0 0 8px}
dialog.keys table{border-collapse:collapse}
dialog.keys th{text-align:left;font-weight:600;white-space:nowrap;padding:2px 18px 2px 0;vertical-align:top}
dialog.keys td{padding:2px 0}
dialog.keys tr.part td{padding-top:10px;color:var(--faint)}`;

// Gives what opens the sheet in `root`, or shuts it.
export function keySheet(root) {
  let sheet = null;
  return () => {
    if (sheet?.open) return sheet.close();
    if (!sheet) {
      make("style", "", root, KEY_STYLE);
      sheet = make("dialog", "keys", root);
      sheet.setAttribute("aria-label", "Keys");
      make("h2", "", sheet, "Keys");
      const body = make("tbody", "", make("table", "", sheet));
      for (const [keys, does] of KEY_SHEET) {
        const row = make("tr", keys ? "" : "part", body);
        if (keys) make("th", "", row, keys).scope = "row";
        const cell = make("td", "", row, does);
        if (!keys) cell.colSpan = 2;
      }
    }
    return sheet.showModal();
  };
}
