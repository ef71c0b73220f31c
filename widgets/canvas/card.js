// The card around every canvas view: title, figures, tools, menu, tip, and canvases that redraw
// once per animation frame. Text from a run only ever goes into textContent or fillText.

import { css, palette } from "./colors.js";
import { unpack } from "./frames.js";
import { Height } from "./height.js";
import { pointByKeys } from "./key_pointer.js";
import { cardMenu } from "./menu.js";
import { make } from "../page/nodes.js";
import { clamp } from "./numbers.js";
import { figuresAt } from "./running.js";
import { STYLE } from "./card_style.js";

const SCRUBBED = 1000; // milliseconds a cursor that a person moved waits for the host's to follow

const WHEEL_SAID = 1000; // milliseconds that a card says how its wheel works

const UNSEEN = 80; // milliseconds between pictures of a view that is scrolled out of sight

export class Card {
  // `name` names saved pictures. Set `onFrame` and `onTheme`; surfaces redraw by themselves.
  constructor(el, model, name, title) {
    this.model = model;
    this.name = name;
    this.surfaces = [];
    this.frame = null;
    this.onFrame = () => {};
    this.fresh = true; // the newest frame has not been read yet
    make("style", "", el, STYLE);
    this.root = make("section", "pw", el);
    this.root.setAttribute("aria-label", title);
    const head = make("header", "pw-head", this.root);
    this.title = make("h2", "pw-title", head, title);
    this.chip = make("span", "pw-chip", null, "modelled");
    this.figures = make("div", "pw-figures", head);
    this.menu = cardMenu(this, make("div", "pw-menu", head));
    this.tools = make("div", "pw-tools", this.root);
    this.body = make("div", "pw-body", this.root);
    this.empty = make("div", "pw-empty", this.body);
    this.tip = make("div", "pw-tip", this.root);
    this.fitted = new ResizeObserver(() => {
      const isNarrow = this.root.classList.toggle("narrow", this.root.clientWidth < 760);
      // A legend in one line is scrolled, by keys too.
      for (const legend of this.tools.querySelectorAll(".pw-legend")) {
        legend.tabIndex = isNarrow ? 0 : -1;
        legend.setAttribute("role", "group");
        legend.setAttribute("aria-label", "Legend");
      }
    });
    this.fitted.observe(this.root);
    // What a view says may wrap its tools into another row, after it has wished for its height.
    this.fitHeight = () => {};
    this.wrapped = new ResizeObserver(() => this.frame && this.fitHeight(this.frame));
    this.wrapped.observe(this.tools);
    [this.isSeen, this.painted] = [true, 0];
    this.watch = new IntersectionObserver((entries) => {
      this.isSeen = entries[entries.length - 1].isIntersecting;
      if (this.later && this.isSeen) this.schedule();
    });
    this.watch.observe(this.root);
    this.height = new Height(this.root, name, model.get("options").height || 560);
    [this.heard, this.closing, this.known] = [[], [], {}];
    for (const name of ["cursor", "chosen", "reach", "recent", "figures"]) {
      this.listen(name, () => { delete this.known[name]; });
    }
    this.listen("frame", () => { this.fresh = true; this.schedule(); });
    // A person who drags the time bar sees the cursor move at once; the host's answer comes after.
    this.isEntered = false; // whether a person has clicked a picture here, and not left it since
    this.root.addEventListener("pointerleave", () => { this.isEntered = false; });
    this.hearDocument("keydown", (event) => { if (event.key === "Escape") this.isEntered = false; });
    this.hearDocument("workbench-work", ({ detail }) => {
      const before = this.work;
      this.work = detail;
      if (before || detail) this.sayEmpty();
    });
    this.hearDocument("workbench-scrub", ({ detail }) => {
      this.scrubbed = { time: detail, until: performance.now() + SCRUBBED };
      this.schedule();
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.schedule(), SCRUBBED + 20);
    });
    this.listen("cursor", () => {
      if (this.scrubbed?.time === this.model.get("cursor")) this.scrubbed = null;
      this.schedule();
    });
    for (const name of ["chosen", "reach", "recent"]) this.listen(name, () => this.schedule());
    this.listen("figures", () => this.frame && this.showFigures(this.trait("figures")));
    for (const name of ["is_dark", "options"]) this.listen(name, () => this.retheme());
    this.retheme();
  }

  listen(name, act) {
    this.model.on(`change:${name}`, act);
    this.heard.push([name, act]);
  }

  // Call `act` when a person lets go of whoever is pinned, wherever on the page.
  onUnpinned(act) { this.hearDocument("workbench-unpin", act); }

  // Listen to events of the whole page until this view is closed.
  hearDocument(name, act) {
    document.addEventListener(name, act);
    this.closing.push(() => document.removeEventListener(name, act));
  }

  close() {
    for (const act of this.closing) act();
    for (const [name, act] of this.heard) this.model.off?.(`change:${name}`, act);
    for (const surface of this.surfaces) surface.watch.disconnect();
    this.fitted.disconnect();
    this.wrapped.disconnect();
    this.watch.disconnect();
    clearTimeout(this.later);
    this.height.close();
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.settling);
    clearTimeout(this.telling);
    clearTimeout(this.wheelSaid);
  }

  // A plain wheel scrolls the page. With Ctrl or ⌘ (a pinch, too), or once a person has clicked the
  // picture and until they leave it, it is the picture's, as far as that has somewhere to go.
  // `act` tells whether it had; `does` is what the wheel would do, "" for nothing.
  wheel(event, does, act) {
    const isAsked = event.ctrlKey || event.metaKey;
    if (isAsked || event.shiftKey || this.isEntered) {
      const hasMoved = act();
      if (isAsked || hasMoved) event.preventDefault(); // with Ctrl the browser would zoom the page
      return;
    }
    if (!does) return;
    this.wheelTip ||= make("div", "pw-wheel", this.body);
    const key = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
    write(this.wheelTip, `${key} + wheel ${does}`);
    this.wheelTip.classList.add("on");
    clearTimeout(this.wheelSaid);
    this.wheelSaid = setTimeout(() => this.wheelTip.classList.remove("on"), WHEEL_SAID);
  }

  // What a trait is, asked of the host once until it changes: views ask for every lane they draw.
  trait(name) { return name in this.known ? this.known[name] : (this.known[name] = this.model.get(name)); }

  get cursor() {
    if (this.scrubbed && performance.now() < this.scrubbed.until) return this.scrubbed.time;
    return this.trait("cursor") || 0;
  }

  // How far time axes go at least: runs beside one another, and recordings, are all shown whole.
  get reach() { return Math.max(this.duration, this.trait("reach") || 0); }
  get chosen() { return this.trait("chosen") || ""; }

  // What a live view shows until a person asks for more: the last seconds before the cursor.
  recent(end) {
    const span = this.trait("recent");
    if (!span || end <= span) return null;
    const to = clamp(this.cursor, span, end);
    return [to - span, to];
  }

  set(name, value) {
    if (JSON.stringify(this.model.get(name)) === JSON.stringify(value)) return;
    this.model.set(name, value);
    this.model.save_changes();
    this.schedule();
  }

  // Tell the host what is shown, not more often than it can answer.
  tellWindow(window) {
    this.toTell = window;
    this.telling ||= setTimeout(() => {
      this.telling = 0;
      this.set("window", this.toTell);
    }, 120);
  }

  retheme() {
    const options = this.model.get("options");
    this.colors = palette(options, this.model.get("is_dark"));
    this.duration = options.duration || 0;
    this.scale = options.scale || 1; // of all that is drawn and written
    this.root.classList.toggle("large", this.scale > 1);
    const style = this.root.style;
    for (const name of ["paper", "ink", "faint", "line", "idle", "raised"]) {
      style.setProperty(`--${name}`, css(this.colors[name]));
    }
    style.setProperty("--font", options.font);
    this.onTheme?.();
    this.schedule();
  }

  // Draw at the next animation frame; out of sight, at a pace that leaves the time to what is seen.
  schedule() {
    if (this.waiting) return;
    const rest = this.isSeen ? 0 : this.painted + UNSEEN - performance.now();
    if (rest > 0) {
      this.later ||= setTimeout(() => {
        this.later = 0;
        this.schedule();
      }, rest);
      return;
    }
    clearTimeout(this.later);
    this.later = 0;
    this.waiting = requestAnimationFrame((now) => {
      [this.waiting, this.painted] = [0, now];
      if (this.fresh) this.read();
      if (this.frame?.running) this.showFigures(figuresAt(this.frame, this.whole, this.cursor));
      for (const surface of this.surfaces) surface.paint();
    });
  }

  // Only the newest frame is ever read: those that came in between are dropped.
  read() {
    this.fresh = false;
    this.frame = unpack(this.model.get("frame"));
    const frame = this.frame;
    this.sayEmpty();
    if (!frame) return;
    if (frame.modelled) this.title.appendChild(this.chip); else this.chip.remove();
    write(this.chip, frame.modelled_lane ? "modelled in part" : "modelled");
    this.whole = frame.figures || this.trait("figures") || [];
    if (!frame.running) this.showFigures(this.whole);
    this.onFrame(frame);
  }

  // Where there is nothing to see: what goes on now, else what to do.
  sayEmpty() {
    const { frame } = this;
    const idle = !frame ? "Nothing to show yet: it is drawn here as soon as something happens." : frame.empty;
    const empty = idle && (this.work || idle);
    write(this.empty, empty || "");
    this.empty.style.display = empty ? "flex" : "none";
    this.empty.classList.toggle("pw-later", !frame && !this.work); // it may only not have come yet
    this.tools.style.visibility = empty ? "hidden" : "visible";
  }

  showFigures(figures) {
    while (this.figures.children.length > figures.length) this.figures.lastChild.remove();
    figures.slice(0, 4).forEach(([label, value], i) => {
      let pair = this.figures.children[i];
      if (!pair) {
        pair = make("div", "", this.figures);
        make("span", "pw-label", pair);
        make("span", "pw-value", pair);
      }
      write(pair.children[0], label);
      write(pair.children[1], value);
      pair.title = this.frame?.meant?.[i] || "";
    });
  }

  rename(title) {
    if (this.title.firstChild.textContent === title) return;
    const before = this.title.firstChild.textContent;
    this.title.firstChild.textContent = title;
    this.root.setAttribute("aria-label", title);
    for (const { canvas } of this.surfaces) {
      canvas.setAttribute("aria-label", canvas.getAttribute("aria-label").replace(before, () => title));
    }
  }

  say(text) {
    if (!this.said) this.said = make("span", "pw-said", this.tools);
    write(this.said, text);
  }

  // A sentence under the title that says what the picture comes to.
  lead(text) {
    if (!this.leading) {
      this.leading = make("p", "pw-lead");
      this.figures.before(this.leading);
    }
    write(this.leading, text || "");
  }

  // A row of buttons of which one is down; or, with one choice, a button that is up or down.
  choice(labels, chosen, act) {
    const row = make("div", "pw-switch", this.tools);
    const press = (which) => [...row.children].forEach((b, i) =>
      b.setAttribute("aria-pressed", String(i === which)));
    labels.forEach((label, i) => {
      const button = make("button", "", row, label);
      button.type = "button";
      button.onclick = () => {
        const down = button.getAttribute("aria-pressed") === "true";
        const which = labels.length === 1 && down ? -1 : i;
        press(which);
        act(which);
        this.schedule();
      };
    });
    press(chosen);
    return row;
  }

  // Show `lines` beside the pointer, the first one bold; no lines hide the tip.
  hint(lines, event) {
    this.tip.style.display = lines && lines.length ? "block" : "none";
    if (!lines || !lines.length) return;
    this.tip.replaceChildren(...lines.map((line) => make("div", "", null, line)));
    const box = this.root.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    this.tip.style.left = `${Math.max(4, x + 16 + width > box.width ? x - width - 12 : x + 16)}px`;
    this.tip.style.top = `${clamp(y + 14, 4, box.height - height - 4)}px`;
  }

  // A canvas filling `parent`. draw(ctx, width, height) in CSS pixels; `acts` are pointer listeners.
  // With `wheel`, which tells whether it had somewhere to go, comes `wheelDoes`: its words. What is
  // pointed at can be reached by keys, too, unless the surface has `ownKeys`.
  surface(parent, draw, acts = {}) {
    const surface = new Surface(this, parent, draw, acts);
    this.surfaces.push(surface);
    return surface;
  }
}

// The same text written again would make the page lay itself out again.
function write(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

class Surface {
  constructor(card, parent, draw, { wheelDoes = () => "", ownKeys = false, ...acts }) {
    this.card = card;
    this.draw = draw;
    parent.classList.add("pw-surface");
    this.canvas = make("canvas", "", parent);
    this.canvas.setAttribute("role", "img"); // its data stand as a table behind the card's ⋯
    this.canvas.setAttribute("aria-label", card.root.getAttribute("aria-label"));
    this.parent = parent;
    this.ctx = this.canvas.getContext("2d");
    this.depends = null; // gives the values it draws from; while they stay, so does what it shows
    this.size = null; // CSS pixels; asking the page for it at every picture makes it lay itself out
    this.watch = new ResizeObserver(() => {
      this.size = null;
      card.schedule();
    });
    this.watch.observe(parent);
    for (const [name, act] of Object.entries(acts)) {
      this.canvas.addEventListener(name, (event) => {
        const box = this.canvas.getBoundingClientRect();
        const { scale } = card, does = () => act((event.clientX - box.left) / scale, (event.clientY - box.top) / scale, event);
        if (name === "wheel") card.wheel(event, wheelDoes(), does); else does();
      }, { passive: false });
    }
    this.canvas.addEventListener("pointerdown", () => { card.isEntered = true; });
    if (acts.pointermove && !ownKeys) pointByKeys(this.canvas, card.root.getAttribute("aria-label"));
  }

  paint(ratio = Math.min(2, window.devicePixelRatio || 1)) {
    this.size ??= [this.parent.clientWidth, this.parent.clientHeight];
    const [wide, high] = this.size.map(Math.floor), { scale } = this.card;
    if (wide < 8 || high < 8 || !this.card.frame) return;
    // What is drawn counts in larger pixels where all is to be large.
    const [width, height, pixels] = [wide / scale, high / scale, ratio * scale];
    const canvas = this.canvas, values = this.depends && [...this.depends(), width, height, pixels];
    if (values && this.values?.length === values.length && values.every((v, i) => v === this.values[i])) return;
    this.values = values;
    if (canvas.width !== wide * ratio || canvas.height !== high * ratio) {
      canvas.width = wide * ratio;
      canvas.height = high * ratio;
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    this.width = width;
    this.height = height;
    this.ratio = pixels;
    const { ctx } = this;
    ctx.setTransform(pixels, 0, 0, pixels, 0, 0);
    ctx.clearRect(0, 0, width, height);
    this.drawOn(ctx, width, height, pixels);
  }

  drawOn(ctx, width, height, ratio) {
    ctx.font = `12px ${this.card.colors.font}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    this.draw(ctx, width, height, ratio);
  }
}
