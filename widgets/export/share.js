// A menu of what can be taken along: texts to copy and files to save. `copies` and `files` are their
// words. The texts come anew each time the menu opens (`opened` counts), for a browser lets a page
// copy only while it answers a press. A file is asked for as `wanted` {place} and comes as `made`
// {name, place, data}.

import { copied } from "../page/clipboard.js";
import { make } from "../page/nodes.js";

const SAID = 1500; // milliseconds that an entry says it was copied
const LOOK = `
.share button { font: 500 12px/1.75 var(--font); color: var(--ink); background: transparent; cursor: pointer;
  border: 1px solid var(--line); border-radius: 8px; padding: 3px 10px; white-space: nowrap; }
.share button:hover { background: var(--raised); }
.share button:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
.share button:disabled { color: var(--faint); cursor: progress; }
.share [popover] { position: fixed; margin: 0; inset: auto; padding: 6px; min-width: 190px; color: var(--ink);
  background: var(--paper); border: 1px solid var(--line); border-radius: 8px;
  box-shadow: 0 6px 24px rgba(0, 0, 0, .22); font: 14px var(--font); }
.share [popover] button { display: block; width: 100%; border: 0; border-radius: 5px; text-align: left; }
.share h3 { margin: 4px 10px 2px; font: 12px var(--font); color: var(--faint); }`;

function render({ model, el }) {
  make("style", "", el).textContent = LOOK;
  const root = make("div", "share", el), opens = make("button", "", root, "Share ▾");
  const menu = make("div", "", root);
  opens.type = "button";
  opens.setAttribute("aria-haspopup", "menu");
  menu.popover = "auto";
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", "Share this run");
  let count = 0;
  const entry = (words, act) => {
    const button = make("button", "", menu, words);
    button.type = "button";
    button.setAttribute("role", "menuitem");
    button.onclick = () => act(button);
    return button;
  };
  const copies = model.get("copies").length ? [make("h3", "", menu, "Copy")] : [];
  model.get("copies").forEach((words, place) => {
    const copy = async (button) => {
      const text = model.get("texts")[place];
      const done = await copied(text.startsWith("?") ? new URL(text, document.location.href).href : text);
      button.textContent = done ? "Copied" : "Copying is not allowed here";
      setTimeout(() => { button.textContent = words; }, SAID);
    };
    copies.push(entry(words, copy));
  });
  make("h3", "", menu, "Save");
  const files = model.get("files").map((words, place) => entry(words, (button) => {
    button.disabled = true;
    model.set("wanted", { place, count: ++count });
    model.save_changes();
  }));
  opens.onclick = () => {
    if (menu.matches(":popover-open")) return menu.hidePopover();
    for (const button of copies.slice(1)) button.disabled = true;
    model.set("opened", model.get("opened") + 1);
    model.save_changes();
    menu.showPopover();
    const box = opens.getBoundingClientRect();
    const left = Math.max(8, Math.min(box.left, window.innerWidth - menu.offsetWidth - 8));
    menu.style.left = `${left}px`;
    menu.style.top = `${Math.min(box.bottom + 4, Math.max(8, window.innerHeight - menu.offsetHeight - 8))}px`;
    return menu.querySelector("button:enabled")?.focus();
  };
  menu.onkeydown = (event) => {
    if (event.key === "Escape") { // the browser would leave the focus nowhere
      event.preventDefault();
      menu.hidePopover();
      opens.focus();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...menu.querySelectorAll("button:enabled")], at = all.indexOf(root.getRootNode().activeElement);
    all[(at + step + all.length) % all.length]?.focus();
  };
  const told = () => { for (const button of copies.slice(1)) button.disabled = false; };
  const save = () => {
    const { name, place, data } = model.get("made");
    if (!name) return;
    files[place].disabled = false;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data]));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const paint = () => {
    const colours = model.get("options")[model.get("is_dark") ? "dark" : "light"] || {};
    for (const [name, value] of Object.entries(colours)) root.style.setProperty(`--${name}`, value);
  };
  const heard = { "change:texts": told, "change:made": save, "change:is_dark": paint };
  for (const [name, act] of Object.entries(heard)) model.on(name, act);
  paint();
  // Panel calls what a component returns when it goes away.
  return () => { for (const [name, act] of Object.entries(heard)) model.off?.(name, act); };
}

export default { render };
