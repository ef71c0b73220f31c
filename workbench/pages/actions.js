// A row of buttons: `labels` names them, the first `framed` of them have a frame. Which was pressed
// goes out as `pressed` {place, count}. `note` {text, link, address} stands after the last.

import { make } from "../../widgets/page/nodes.js";

const LOOK = `
.actions { display: flex; gap: 8px; align-items: center; overflow-x: auto; padding: 3px;
  scrollbar-width: thin; }
.actions.more { mask-image: linear-gradient(to right, #000 calc(100% - 36px), transparent); }
@media (max-width: 1099px) { .actions { flex-wrap: wrap; } }
.actions button { font: 500 12px/1.75 var(--wb-font); color: var(--wb-accent); cursor: pointer;
  background: transparent; border: 1px solid transparent; border-radius: 8px; padding: 3px 9px;
  white-space: nowrap; flex: none; }
.actions button.framed { border-color: color-mix(in srgb, var(--wb-accent) 50%, transparent); }
.actions button:hover { background: color-mix(in srgb, var(--wb-accent) 8%, transparent); }
.actions button.framed:hover { border-color: var(--wb-accent); }
.actions button:focus-visible { outline: 2px solid var(--wb-accent); outline-offset: 2px; }
.actions .note { white-space: nowrap; font: 12px var(--wb-font); color: var(--wb-faint); }
.actions a { color: var(--wb-accent); text-decoration: none; }
.actions a:hover { text-decoration: underline; }`;

function render({ model, el }) {
  make("style", "", el).textContent = LOOK;
  const row = make("div", "actions", el);
  let count = 0;
  model.get("labels").forEach((label, place) => {
    const made = make("button", place < model.get("framed") ? "framed" : "", row, label);
    made.type = "button";
    made.onclick = () => {
      model.set("pressed", { place, count: ++count });
      model.save_changes();
    };
  });
  const note = make("span", "note", row);
  note.setAttribute("role", "status");
  const show = () => {
    const said = model.get("note");
    note.replaceChildren();
    if (!said.text) return;
    note.append(said.text);
    if (said.link) {
      note.append(" · ");
      make("a", "", note, said.link).href = said.address;
    }
    note.scrollIntoView({ block: "nearest", inline: "nearest" }); // it may stand beyond the edge
  };
  // What goes on beyond the edge fades there, for its neighbour begins at once.
  const fade = () => row.classList.toggle("more", row.scrollLeft + row.clientWidth < row.scrollWidth - 1);
  const watch = new ResizeObserver(fade);
  watch.observe(row);
  row.addEventListener("scroll", fade, { passive: true });
  row.addEventListener("focusin", (event) => event.target.scrollIntoView({ block: "nearest", inline: "nearest" }));
  model.on("change:note", show);
  show();
  return () => {
    watch.disconnect();
    model.off?.("change:note", show);
  };
}

export default { render };
