// Lanes over time: an axis below, names on the left, Ctrl + wheel zooms, drag pans, the time cursor.
// A view gives `head` (pixels above the lanes), `pitch` (least and most lane height) and draws.
// Lanes whose frame has no `hue` are named without a swatch; `depth` indents names.
// A view with a `scale` of its own counts something else than seconds along the axis.

import { axisBelow, cursorLabel, drawCursor } from "./axes.js";
import { Bookmarks } from "./bookmarks.js";
import { css, mix } from "./colors.js";
import { make } from "../page/nodes.js";
import { Finder } from "./finder.js";
import { ago, clamp, clockTime, seconds, timeTicks } from "./numbers.js";
import { fit } from "./text.js";
import { SWATCH, ownerSwatch } from "./swatch.js";
import { hatchBand } from "./texture.js";
import { Minimap } from "./minimap.js";
import { TimeRange } from "./time_range.js";

export const NAMES = 84;
export const TIME_AXIS = 24;
export const GAP = 8;
const INSET = 8;
const DEEPEST_INSET = 4;
const RANGE_STRIDE = 1 / 20; // of what is in sight: how far a key moves a range's end

// Seconds along the axis. `at` turns seconds into what is counted, `time` turns it back; `fades`:
// what lies right of the cursor has not happened yet; `least`: what the closest zoom shows.
export const TIME_SCALE = {
  name: "time", fades: true, least: 0, at: (time) => time, time: (x) => x, ticks: timeTicks, word: seconds, moment: clockTime,
  end: (frame, reach) => Math.max(frame.now, reach),
};

export class Timeline {
  // `view`: {head, foot, left, pitch: [least, most], draw(ctx, timeline), hover(spot, event), click(spot)};
  // with `pieces(frame)` a range can be dragged over and counted, with `mini(frame)`, how busy each
  // of equal parts of the run is (or null), a minimap stands above the lanes.
  constructor(card, area, view) {
    Object.assign(this, { card, view, run: "", end: 0, first: 0, held: false, zoom: null, near: null, whole: false });
    this.left = view.left || NAMES;
    // Runs beside one another are zoomed together: their axes stay one.
    this.hear = ({ detail }) => {
      if (!card.trait("reach") || detail.by === this || detail.name !== card.name) return;
      if (detail.scale !== this.scale.name) return;
      this.zoom = detail.zoom;
      card.schedule();
    };
    card.hearDocument("workbench-zoom", this.hear);
    card.listen("recent", () => { this.whole = false; });
    this.surface = card.surface(area, (ctx, w, h) => this.draw(ctx, w, h), {
      wheel: (x, y, event) => this.wheel(x, y, event),
      wheelDoes: () => "zooms",
      ownKeys: true,
      pointerdown: (x, y, event) => this.press(x, y, event),
      pointermove: (x, y, event) => this.move(x, y, event),
      pointerup: (x, y, event) => this.release(x, y, event),
      pointerleave: (x, y, event) => {
        if (!this.drag) view.hover(null, event);
      },
      dblclick: () => this.reset(),
    });
    this.range = view.pieces ? new TimeRange(this, view.pieces) : null;
    this.finder = view.pieces ? new Finder(this, view.pieces) : null;
    this.bookmarks = new Bookmarks(this);
    this.mini = view.mini ? new Minimap(this, view.mini, GAP) : null;
    this.surface.canvas.tabIndex = 0;
    this.surface.canvas.setAttribute("aria-label",
      `${card.root.getAttribute("aria-label")} Arrow keys or A and D pan, plus and minus or W and S zoom, `
      + "0 shows all, slash finds, M marks a moment, "
      + "[ and ] go to marks, Shift and arrows choose a range from the time cursor on, Escape leaves it");
    this.surface.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  get frame() { return this.card.frame; }
  get scale() { return this.view.scale?.() || TIME_SCALE; }
  get part() { return this.zoom || this.near; } // what is in sight, of more than that
  get isRecent() { return Boolean(this.recent) && this.part === this.recent; } // the last seconds of a live run
  get from() { return this.part ? this.part[0] : 0; }
  get to() { return this.part ? this.part[1] : this.end; }

  // A button that shows everything again; there while something is out of sight by choice.
  offerReset() {
    const row = make("div", "pw-switch", this.card.tools);
    this.button = make("button", "", row, "Show all");
    this.button.type = "button";
    this.button.onclick = () => this.reset();
  }

  zoomTo(zoom) {
    this.zoom = zoom;
    const detail = { name: this.card.name, scale: this.scale.name, zoom, by: this };
    if (this.card.trait("reach")) document.dispatchEvent(new CustomEvent("workbench-zoom", { detail }));
  }

  reset() {
    this.whole = true;
    this.zoomTo(null);
    this.held = false;
    this.card.schedule();
  }

  x(time) { return this.left + (time - this.from) / (this.to - this.from || 1) * (this.width - this.left - GAP); }
  time(x) { return this.from + (x - this.left) / (this.width - this.left - GAP) * (this.to - this.from); }
  y(lane) { return this.top + (lane - this.first) * this.pitch; }
  lane(y) {
    const lane = Math.floor((y - this.top) / this.pitch + this.first);
    return y >= this.top && y < this.bottom && lane >= 0 && lane < this.frame.lanes ? lane : -1;
  }

  // What one lane's columns are at: frames carry lanes from `lane0` on.
  at(lane) { return lane - this.frame.lane0; }
  known(lane) { return lane >= this.frame.lane0 && lane < this.frame.lane0 + this.frame.names.length; }

  color(lane) {
    const { colors, chosen } = this.card, place = this.at(lane);
    const hue = colors.hues[this.frame.hue[place]];
    return chosen && this.frame.names[place] !== chosen && this.frame.names.includes(chosen)
      ? mix(hue, colors.paper, 0.7) : hue;
  }

  // Lanes that show, of those whose columns are here.
  *visible() {
    const last = Math.min(this.frame.lanes, Math.ceil(this.first + this.fits));
    for (let lane = Math.max(0, Math.floor(this.first)); lane < last; lane++) {
      if (this.known(lane)) yield lane;
    }
  }

  measure(width, height) {
    const { frame, view } = this;
    if (frame.run !== this.run) {
      Object.assign(this, { run: frame.run, zoom: null, held: false, whole: false });
      if (this.range?.range) this.range.clear();
    }
    this.end = Math.max(this.scale.end(frame, this.card.reach), 1e-9);
    // What a view would show first, until a person asks for all of it.
    const recent = this.scale === TIME_SCALE ? this.card.recent(this.end) : null;
    this.near = this.whole || this.card.trait("reach") ? null : view.near?.(frame, this.end) || recent;
    this.recent = recent;
    Object.assign(this, { width, top: view.head + (this.mini?.high || 0), bottom: height - TIME_AXIS - (view.foot || 0) });
    const room = Math.max(1, this.bottom - this.top);
    const alive = this.isRecent && !this.held ? this.alive(recent) : null;
    this.pitch = clamp(room / Math.max(1, alive ? alive[1] - alive[0] + 1 : frame.lanes), ...view.pitch);
    this.fits = Math.max(1, Math.floor(room / this.pitch + 1e-6));
    if (frame.lanes > this.fits) this.pitch = room / this.fits; // no lane is cut in half
    this.most = Math.max(0, frame.lanes - this.fits);
    if (alive) this.first = Math.max(alive[0], alive[1] - this.fits + 1); // the newest, of more than fit
    else if (!this.held) this.follow();
    this.first = clamp(this.first, 0, this.most);
  }

  // The first and the last lane of those that had begun and not ended somewhere in a window.
  alive([from, to]) {
    const { born, ended, lane0 } = this.frame;
    let found = null;
    for (let i = 0; i < born.length; i++) {
      if (born[i] <= to && ended[i] >= from) found = [found ? found[0] : lane0 + i, lane0 + i];
    }
    return found;
  }

  // Unless a person has scrolled: keep in view the lanes alive at the cursor.
  follow() {
    const { born, ended, lane0 } = this.frame, now = this.card.cursor;
    let first = -1, last = -1;
    for (let i = 0; i < born.length; i++) {
      if (born[i] > now || (ended[i] < now && !(ended[i] === this.frame.now))) continue;
      if (first < 0) first = lane0 + i;
      last = lane0 + i;
    }
    if (first < 0) return;
    const wanted = last - this.fits + 1;
    if (this.first > first) this.first = Math.max(0, first - 1);
    else if (this.first < wanted) this.first = Math.min(wanted, Math.max(first - 1, 0));
  }

  tell() {
    this.card.tellWindow({
      start: this.from, stop: this.to, first: Math.floor(this.first),
      last: Math.ceil(this.first + this.fits), ...(this.view.window?.() || {}),
    });
  }

  draw(ctx, width, height) {
    this.measure(width, height);
    const { colors, cursor } = this.card, { scale } = this;
    this.stripes(ctx);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.left - 1, 0, width - this.left - GAP + 6, this.bottom);
    ctx.clip();
    if (this.frame.modelled && !this.view.hatches) this.hatchBehind(ctx);
    this.view.draw(ctx, this);
    const now = this.x(scale.at(cursor));
    // What comes after the cursor is faint; not where all of a part that a view chose itself does.
    if (scale.fades && cursor < this.frame.now && (cursor >= this.from || this.part !== this.near)) {
      ctx.fillStyle = css(colors.paper, 0.72);
      ctx.fillRect(now, 0, width - now, this.bottom);
    }
    this.range?.draw(ctx);
    this.finder?.draw(ctx);
    ctx.restore();
    this.mini?.draw(ctx);
    this.nameLanes(ctx);
    this.bookmarks.draw(ctx);
    this.axis(ctx, now);
    this.view.below?.(ctx, this.bottom + TIME_AXIS + 4);
    const scope = this.fits < this.frame.lanes - 0.5 || this.zoom;
    this.card.say(this.view.said(this, scope));
    if (this.button) this.button.parentNode.style.display = this.part || this.held ? "" : "none";
    this.tell();
  }

  // Behind all that is modelled. A view that paints a ground of its own `hatches` upon that.
  hatchBehind(ctx) {
    const { left, width, bottom } = this, only = this.frame.modelled_lane;
    if (only) { // some lanes are, others real
      for (const lane of this.visible()) {
        if (only[this.at(lane)]) hatchBand(ctx, this.card.colors, left, this.y(lane), width - left - GAP, this.pitch);
      }
      return;
    }
    hatchBand(ctx, this.card.colors, left, this.mini?.high || 0, width - left - GAP, bottom - (this.mini?.high || 0));
  }

  stripes(ctx) {
    const { colors } = this.card;
    ctx.strokeStyle = css(colors.line);
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const lane of this.visible()) {
      const y = Math.round(this.y(lane) + this.pitch) - 0.5;
      if (y < this.top || y > this.bottom || this.pitch < 9) continue;
      ctx.moveTo(this.left, y);
      ctx.lineTo(this.width - GAP, y);
    }
    ctx.stroke();
  }

  // Names of lanes; above them what stands in the head, in two lines.
  nameLanes(ctx) {
    const { colors, chosen } = this.card, every = Math.ceil(14 / this.pitch);
    ctx.font = `600 12px ${colors.font}`;
    ctx.fillStyle = css(colors.ink);
    const [title, below] = this.heading || ["", ""];
    ctx.fillText(title, 0, 14);
    ctx.font = `12px ${colors.font}`;
    ctx.fillStyle = css(colors.faint);
    ctx.fillText(fit(ctx, below, this.left - 6), 0, 32);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, this.top - 4, this.left, this.bottom - this.top + 8); // names of low lanes stick out
    ctx.clip();
    for (const lane of this.visible()) {
      const place = this.at(lane), name = this.frame.names[place], picked = name === chosen;
      if (lane % every && !picked) continue;
      const y = this.y(lane) + this.pitch / 2;
      const hue = this.frame.hue && colors.hues[this.frame.hue[place]];
      const inset = this.frame.depth ? INSET * Math.min(this.frame.depth[place], DEEPEST_INSET) : 0;
      if (hue) ownerSwatch(ctx, hue, this.frame.texture[place], colors.paper, inset, y);
      ctx.font = `${picked ? 600 : 400} 12px ${colors.font}`;
      ctx.fillStyle = css(colors.ink);
      ctx.fillText(fit(ctx, name, this.left - inset - (hue ? SWATCH + 14 : 8)), inset + (hue ? SWATCH + 6 : 0), y + 0.5);
    }
    ctx.restore();
    ctx.font = `12px ${colors.font}`;
  }

  axis(ctx, now) {
    const { colors, cursor } = this.card, { scale, left, bottom } = this, right = this.width - GAP;
    const late = this.isRecent ? this.end : 0; // what counts back from the newest moment
    const found = scale.ticks(this.from - late, this.to - late, Math.max(2, (right - left) / 110)).map((value) => value + late);
    const labels = found.map((value) => [value, late ? ago(value, late) : scale.word(value, this.to, found[1] - found[0])]);
    const said = late ? ago(cursor, late) : (scale.moment || scale.word)(scale.at(cursor), this.to);
    const label = cursorLabel(ctx, said, now, left, right);
    const shown = now >= left - 1 && now <= right + 1;
    const plot = { left, right, bottom, x: { at: (value) => this.x(value) } };
    axisBelow(ctx, colors, plot, labels, left, right, shown && [label.at - label.half, label.at + label.half]);
    if (shown) drawCursor(ctx, colors, label, now, 0, bottom);
  }

  // --- pointer and keys ---------------------------------------------------------------------------

  // Whether there was anything left to zoom or to scroll.
  wheel(x, y, event) {
    const { from, to, first } = this;
    if (x < this.left || event.shiftKey) {
      this.held = true;
      this.first = clamp(this.first + Math.sign(event.deltaY || event.deltaX) * 3, 0, this.most);
    } else this.zoomAt(x, Math.exp(clamp(event.deltaY, -300, 300) * 0.002));
    this.card.schedule();
    return this.from !== from || this.to !== to || this.first !== first;
  }

  // Show `factor` times the time, with what lies under `x` staying there; never beyond the run.
  zoomAt(x, factor) {
    const least = Math.max(this.end * 1e-6, this.scale.least);
    const time = this.time(x), span = Math.max(least, (this.to - this.from) * factor);
    if (span >= this.end) this.reset();
    else {
      const share = (time - this.from) / (this.to - this.from);
      this.pan(time - share * span, span);
    }
  }

  pan(from, span) {
    const start = clamp(from, 0, Math.max(0, this.end - span));
    this.zoomTo([start, start + span]);
  }

  press(x, y, event) {
    const isMini = this.mini?.holds(x, y), isRange = this.range?.isAsked(event) && y >= this.top && y < this.bottom;
    if (isMini) this.mini.press(x);
    this.drag = { isMini, isRange, x, y, from: this.from, first: this.first, moved: false, axis: y > this.bottom
      && y < this.bottom + TIME_AXIS };
    event.target.setPointerCapture(event.pointerId);
    if (this.drag.axis) this.seek(x);
  }

  seek(x) {
    const time = this.bookmarks.near(x) ?? this.scale.time(clamp(this.time(x), 0, this.end));
    this.card.set("seek", Math.max(0, time));
  }

  move(x, y, event) {
    const drag = this.drag;
    if (!drag) return this.view.hover({ x, y, lane: this.lane(y), time: this.time(x) }, event);
    if (drag.axis) return this.seek(x);
    if (drag.isMini) return this.mini.move(x);
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 4;
    if (!drag.moved) return undefined;
    if (drag.isRange) {
      this.view.hover(null, event); // no tip over what is being chosen
      return this.range.set(drag, { x, y });
    }
    const span = this.to - this.from;
    if (this.part) this.pan(drag.from - (x - drag.x) / (this.width - this.left - GAP) * span, span);
    if (this.most > 0) {
      this.held = true;
      this.first = clamp(drag.first - (y - drag.y) / this.pitch, 0, this.most);
    }
    return this.card.schedule();
  }

  release(x, y, event) {
    const drag = this.drag;
    this.drag = null;
    if (drag?.isMini) return this.mini.release(x);
    if (drag && !drag.moved && !drag.axis) {
      this.view.click({ x, y, lane: this.lane(y), time: this.time(x) }, event);
    }
  }

  key(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.shiftKey && way && this.range) {
      event.preventDefault();
      event.stopPropagation();
      return this.range.extend(way * RANGE_STRIDE);
    }
    const middle = (this.left + this.width) / 2, span = this.to - this.from;
    const acts = {
      "+": () => this.zoomAt(middle, 0.7), "=": () => this.zoomAt(middle, 0.7),
      "-": () => this.zoomAt(middle, 1 / 0.7), 0: () => this.reset(),
      ArrowLeft: () => this.part && this.pan(this.from - span / 5, span),
      ArrowRight: () => this.part && this.pan(this.from + span / 5, span),
      ArrowUp: () => { this.held = true; this.first -= 3; },
      ArrowDown: () => { this.held = true; this.first += 3; },
      Escape: () => this.range?.clear(),
      "/": () => this.finder?.open(true),
      m: () => this.bookmarks.toggle(),
      "[": () => this.bookmarks.go(-1),
      "]": () => this.bookmarks.go(1),
    };
    for (const [key, same] of [["w", "+"], ["s", "-"], ["a", "ArrowLeft"], ["d", "ArrowRight"]]) acts[key] = acts[same];
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    event.preventDefault();
    if (this.part && way) event.stopPropagation(); // what pans does not step the time cursor as well
    acts[event.key]();
    return this.card.schedule();
  }
}
