// How a view is to be read, as a sheet over the page: what it shows, its axes, its colours with the
// legend's own marks, and what to try. Its words come with the view's options, `explain`.

import { make } from "../page/nodes.js";

const SHEET = `
dialog.pw-explain{font:14px/1.5 var(--font,sans-serif);color:var(--ink);background:var(--paper);
 border:1px solid var(--line);border-radius:10px;padding:18px 22px;max-width:min(620px,92vw);max-height:86vh}
.pw-explain::backdrop{background:rgba(0,0,0,.3)}
.pw-explain h2{font-size:16px;line-height:22px;margin:0 0 10px}
.pw-explain dt{font-weight:600}
.pw-explain dd{margin:0 0 8px;color:var(--faint)}
.pw-explain p{margin:0}
.pw .pw-explain .pw-legend{margin:2px 0 0;color:var(--ink);flex-wrap:wrap;mask-image:none;padding:0}
.pw .pw-explain button{display:block;margin:6px 0 0 auto}`;
const MODELLED = "This run is modelled: its times come from a described device, not from a clock. A slanted "
  + "hatching stands behind the plot, lines are dashed; what is real has neither.";

export function explained(card) { return card.model.get("options").explain || []; }

// Opens the sheet; made anew each time, as legend and theme may have changed. Escape shuts it.
export function explainView(card) {
  const back = card.root.getRootNode().activeElement;
  const sheet = make("dialog", "pw-explain", card.root), title = card.title.firstChild.textContent;
  make("style", "", sheet, SHEET);
  make("h2", "", sheet, title).id = "pw-explained";
  sheet.setAttribute("aria-labelledby", "pw-explained");
  const list = make("dl", "", sheet);
  const rows = [...explained(card), ...(card.frame?.modelled ? [["Modelled", MODELLED]] : [])];
  for (const [of, words] of rows) {
    make("dt", "", list, of);
    const said = make("dd", "", list);
    make("p", "", said, words);
    if (of === "Colours") legendInto(said, card);
  }
  const button = make("button", "", sheet, "Close");
  button.type = "button";
  button.onclick = () => sheet.close();
  sheet.addEventListener("close", () => {
    sheet.remove();
    back?.focus();
  });
  sheet.addEventListener("keydown", (event) => event.stopPropagation()); // keys of the page rest meanwhile
  sheet.showModal();
}

// The marks of the view's own legend: a clone of a canvas is empty until it is drawn.
function legendInto(node, card) {
  for (const legend of card.tools.querySelectorAll(".pw-legend")) {
    if (!legend.childElementCount) continue;
    const copy = legend.cloneNode(true), [from, to] = [legend, copy].map((of) => of.querySelectorAll("canvas"));
    copy.removeAttribute("tabindex");
    from.forEach((canvas, i) => { to[i].getContext("2d").drawImage(canvas, 0, 0); });
    node.append(copy);
  }
}
