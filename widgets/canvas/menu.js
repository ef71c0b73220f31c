// The ⋯ of a card: how it is read, its pictures, its data, and the card as large as the screen.

import { make } from "../page/nodes.js";
import { explained, explainView } from "./explain.js";
import { saveData } from "./frame_data.js";
import { saveDrawing, savePicture } from "./snapshot.js";
import { showTable } from "./data_table.js";

const MENU_ITEMS = [
  ["How to read this view", explainView],
  ["Full screen", fillScreen],
  ["Save picture (PNG)", savePicture],
  ["Save drawing (SVG)", saveDrawing],
  ["Save data (CSV)", saveData],
  ["Show data (table)", showTable],
];

export function cardMenu(card, parent) {
  const button = make("button", "", parent, "⋯");
  button.type = "button";
  button.title = "Export and settings";
  button.setAttribute("aria-label", "Export and settings");
  const list = make("div", "pw-list", parent);
  const show = (isOpen) => {
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  const shut = () => {
    button.focus(); // first: what has the focus is not to be hidden
    show(false);
  };
  show(false);
  button.onclick = () => show(list.hidden);
  parent.addEventListener("focusout", (event) => {
    if (!parent.contains(event.relatedTarget)) show(false);
  });
  parent.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden) return;
    event.stopPropagation();
    shut();
  });
  for (const [text, act] of MENU_ITEMS) {
    if (act === explainView && !explained(card).length) continue;
    if (act === fillScreen && !document.fullscreenEnabled) continue; // as in many a frame
    const item = make("button", "", list, text);
    item.type = "button";
    item.onclick = () => { shut(); act(card); };
  }
  return list;
}

function fillScreen(card) {
  if (document.fullscreenElement) document.exitFullscreen();
  else card.root.requestFullscreen();
}
