// How high a view is: what a person dragged it to, else what its content wishes, else the host's.

import { make } from "../page/nodes.js";
import { clamp } from "./numbers.js";

const LEAST_HEIGHT = 180;
const MOST_HEIGHT = 2400;
const KEY_STEP = 24;

// The height kept for a view of this page; where the browser keeps nothing, only until it reloads.
function keptHeight(name, height) {
  const key = `workbench-height ${location.pathname} ${name}`;
  try {
    if (height === undefined) return Number(localStorage.getItem(key)) || 0;
    if (height) localStorage.setItem(key, String(height)); else localStorage.removeItem(key);
  } catch { /* a page without storage */ }
  return height || 0;
}

export class Height {
  // `usual`: the height without a wish. A handle at the lower edge of `root` moves it, and `changed`
  // hears of it: without it the root itself is made as high.
  constructor(root, name, usual, changed = null) {
    Object.assign(this, { name, usual, wished: 0, dragged: keptHeight(name) });
    this.changed = changed || ((height) => { root.style.height = `${height}px`; });
    const grip = make("div", "pw-grip", root);
    this.grip = grip;
    grip.tabIndex = 0;
    grip.title = "Drag to change the height; double-click for the usual one";
    const facts = { role: "separator", "aria-orientation": "horizontal", "aria-valuemin": LEAST_HEIGHT,
      "aria-valuemax": MOST_HEIGHT, "aria-label": "Height of the view: arrow keys, Home for the usual one" };
    for (const [fact, value] of Object.entries(facts)) grip.setAttribute(fact, String(value));
    grip.onpointerdown = (event) => this.press(event);
    grip.ondblclick = () => this.drag(0);
    grip.onkeydown = (event) => this.key(event);
    // Views of one name on one page keep one height: they are looked at beside one another.
    this.hear = ({ detail }) => {
      if (detail.name !== name || detail.by === this) return;
      this.dragged = detail.height;
      this.apply();
    };
    document.addEventListener("workbench-height", this.hear);
    this.apply();
  }

  get now() { return this.dragged || this.wished || this.usual; }

  close() { document.removeEventListener("workbench-height", this.hear); }

  wish(height) {
    this.wished = Math.round(height);
    this.apply();
  }

  apply() {
    const now = this.now;
    if (now === this.applied) return;
    this.applied = now;
    this.grip.setAttribute("aria-valuenow", String(now));
    this.changed(now);
  }

  // A person's height; 0 for the usual one.
  drag(height) {
    this.dragged = height && clamp(Math.round(height), LEAST_HEIGHT, MOST_HEIGHT);
    this.apply();
    keptHeight(this.name, this.dragged);
    const detail = { name: this.name, height: this.dragged, by: this };
    document.dispatchEvent(new CustomEvent("workbench-height", { detail }));
  }

  press(event) {
    const from = event.clientY + window.scrollY, height = this.now;
    event.preventDefault();
    this.grip.focus();
    this.grip.setPointerCapture(event.pointerId);
    this.grip.onpointermove = (moved) => this.drag(height + moved.clientY + window.scrollY - from);
    this.grip.onpointerup = () => { this.grip.onpointermove = this.grip.onpointerup = null; };
  }

  key(event) {
    const step = KEY_STEP * (event.shiftKey ? 4 : 1);
    const acts = {
      ArrowUp: () => this.drag(this.now - step), ArrowDown: () => this.drag(this.now + step),
      Home: () => this.drag(0),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation(); // Home is the time bar's, too
    acts[event.key]();
  }
}
