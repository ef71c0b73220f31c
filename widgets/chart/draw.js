// Charts: the plots of a picture (widgets/chart/picture.py) under or beside one another. Lines are drawn
// anew only where they changed; the cursor and what the pointer reads lie on a canvas above them.

import { axisBelow, cursorLabel, drawCursor } from "../canvas/axes.js";
import { css } from "../canvas/colors.js";
import { make } from "../page/nodes.js";
import { ago, clamp, clockTime, seconds, timeTicks, worded } from "../canvas/numbers.js";
import { Card } from "../canvas/card.js";
import { NAME_ROOM, Plot, READ_ROOM } from "./plot.js";
import { TIME, chartKey, pointerActs, zoomKey } from "./pointer.js";
import { Promises } from "./promise.js";

// pixels: axis below, between plots, the least width
const PLOT_FOOT = 27;
const APART = 24;
const NARROW = 230;

function render({ model, el }) {
  const { name, question } = model.get("options");
  const card = new Card(el, model, name, question);
  new Chart(card, question);
  return () => card.close();
}

class Chart {
  constructor(card, question) {
    Object.assign(this, { card, plots: [], laid: [], zooms: new Map(), spot: null, band: null });
    const area = make("div", "", card.body);
    area.style.height = "100%";
    card.body.style.marginTop = "8px"; // where there are no tools
    this.reset = make("button", "pw-over", card.body, "Show all");
    this.reset.type = "button";
    card.tools.style.display = "none";
    this.reset.onclick = () => this.showAll();
    card.onFrame = (frame) => this.read(frame, question);
    this.promises = new Promises(this);
    this.under = card.surface(area, (ctx, width, height) => this.draw(ctx, width, height));
    this.under.depends = () => [card.frame, card.colors, ...[...this.zooms].flat(2), ...(this.recent() || [])];
    this.over = card.surface(area, (ctx) => this.drawOver(ctx), { ...pointerActs(this), ownKeys: true });
    this.over.canvas.tabIndex = 0;
    this.over.canvas.addEventListener("keydown", (event) => chartKey(this, event));
    // Runs beside one another are zoomed together: their axes stay one.
    card.hearDocument("workbench-zoom", ({ detail }) => {
      if (!card.trait("reach") || detail.by === this || detail.name !== card.name) return;
      this.zoom(detail.scale, detail.zoom, false);
    });
  }

  read(frame, question) {
    const { card } = this;
    this.plots = frame.plots.map((spec, place) => new Plot(card, spec, place));
    card.rename(frame.question || question);
    card.say(frame.note);
    card.tools.style.display = frame.note ? "" : "none";
    for (const plot of this.plots) {
      const key = zoomKey(plot), zoom = this.zooms.get(key);
      if (zoom && zoom[1] > plot.spec.right * 1.0001) this.zooms.delete(key); // of another run
    }
    const said = this.plots.map(({ spec }) => `${spec.title}: ${spec.lines.map((l) => l.name).join(", ")}`);
    const limits = this.promises.plots.length ? "; L puts limits or takes them away, comma and full stop move them" : "";
    const keys = `plus and minus zoom, arrow keys move along, 0 shows all${limits}`;
    this.over.canvas.setAttribute("aria-label", `${card.root.getAttribute("aria-label")} ${said.join("; ")}. ${keys}.`);
  }

  draw(ctx, width, height) {
    this.lay(ctx, width, height);
    for (const plot of this.laid) plot.draw(ctx);
  }

  lay(ctx, width, height) {
    const { across, plot: each } = this.card.frame, count = this.plots.length;
    if (!count) return;
    const most = clamp(Math.floor((width + APART) / (NARROW + APART)), 1, count);
    const rows = across ? Math.ceil(count / most) : count, columns = Math.ceil(count / rows);
    const wide = (width - APART * (columns - 1)) / columns;
    const foot = across ? PLOT_FOOT : 8, high = (height - (across ? 0 : PLOT_FOOT - foot)) / rows;
    const asked = Math.max(...this.plots.map((plot) => plot.wish(ctx)));
    const room = Math.min(asked, Math.max(READ_ROOM, NAME_ROOM * wide));
    this.plots.forEach((plot, i) => {
      const last = !across && i === count - 1;
      const [x, y] = [(i % columns) * (wide + APART), Math.floor(i / columns) * high];
      const box = { x, y, width: wide, height: high + (last ? PLOT_FOOT - foot : 0) };
      const part = this.zooms.get(zoomKey(plot)) || (plot.spec.timed && this.recent());
      plot.lay(box, room, last ? PLOT_FOOT : foot, part || [0, plot.spec.right]);
    });
    this.laid = this.plots;
    this.below = across ? this.plots : this.plots.slice(-1); // those with an axis below
    const wanted = [rows, each, this.card.root.classList.contains("narrow"), !!this.card.frame.note].join();
    if (this.wanted !== wanted) {
      this.wanted = wanted;
      const around = this.card.root.clientHeight - this.card.body.clientHeight;
      this.card.height.wish(around + rows * each + (across ? 0 : PLOT_FOOT));
    }
    const { pixels } = this, shown = Math.ceil((this.plots[0].right - this.plots[0].left) / 100) * 100;
    if (pixels !== shown) this.tell(shown);
  }

  recent() {
    const timed = this.plots.find((plot) => plot.spec.timed);
    return timed ? this.card.recent(timed.spec.right) : null;
  }

  // Tell the host what is in sight of how many pixels: it sends as many points as that can show.
  tell(pixels = this.pixels) {
    this.pixels = pixels;
    const zoom = this.zooms.get(TIME);
    this.card.tellWindow({ pixels, ...this.promises.told, ...(zoom ? { start: zoom[0], stop: zoom[1] } : {}) });
  }

  drawOver(ctx) {
    const { card } = this, { colors, cursor } = card;
    if (!this.laid.length || this.laid !== this.plots) return;
    for (const plot of this.below) this.axis(ctx, plot, plot.spec.timed ? cursor : null);
    for (const plot of this.laid) plot.marked(ctx);
    this.promises.draw(ctx);
    if (this.band) this.drawBand(ctx);
    else if (this.spot) this.drawSpot(ctx, colors);
  }

  axis(ctx, plot, cursor) {
    const { colors } = this.card, { left, right, bottom, from, to } = plot;
    const late = plot.spec.timed && !this.zooms.get(zoomKey(plot)) && this.recent() ? plot.spec.right : 0;
    const count = Math.max(2, Math.floor((right - left) / (cursor === null ? 56 : 90)));
    const found = timeTicks(from - late, to - late, count).map((value) => value + late);
    const isTime = plot.spec.x_unit === "s";
    const labels = found.map((value) => [value, late ? ago(value, late) : isTime ? seconds(value, to, found[1] - found[0])
      : worded(value, plot.spec.x_unit, to)]);
    const now = cursor === null ? NaN : plot.x.at(cursor);
    const shown = now >= left - 1 && now <= right + 1;
    const label = shown && cursorLabel(ctx, late ? ago(cursor, late) : clockTime(cursor, to), now, left, right);
    axisBelow(ctx, colors, plot, labels, left - 6, right + 30, label && [label.at - label.half, label.at + label.half]);
    if (shown) drawCursor(ctx, colors, label, now, this.laid[0].top, bottom);
  }

  drawBand(ctx) {
    const { plot, from, to } = this.band, { colors } = this.card;
    const [top, bottom] = plot.spec.timed ? [this.laid[0].top, this.below[0].bottom] : [plot.top, plot.bottom];
    ctx.fillStyle = css(colors.ink, 0.1);
    ctx.fillRect(Math.min(from, to), top, Math.abs(to - from), bottom - top);
  }

  // A line through all plots at the time under the pointer, or the owner's point.
  drawSpot(ctx, colors) {
    const { plot, x, owner } = this.spot, at = this.laid[plot];
    if (!at) return;
    if (!at.spec.timed) {
      const [line] = at.lines;
      if (owner >= 0 && owner < line.count) at.dot(ctx, line.xs[owner], line.ys[owner], at.color(line), 5);
      return;
    }
    const time = at.x.low + (x - at.left) / (at.right - at.left) * (at.to - at.from);
    ctx.fillStyle = css(colors.faint, 0.6);
    ctx.fillRect(Math.round(x), this.laid[0].top, 1, this.below[0].bottom - this.laid[0].top);
    for (const each of this.laid) {
      for (const line of each.lines) {
        const value = each.value(line, time);
        if (value !== null) each.dot(ctx, time, value, each.color(line), 3.5);
      }
    }
  }

  // Show x from zoom[0] to zoom[1] of the plots of one axis; null: all of it.
  zoom(key, zoom, tell = true) {
    if (zoom) this.zooms.set(key, zoom); else this.zooms.delete(key);
    this.reset.style.display = this.zooms.size ? "block" : "none";
    if (key === TIME) this.tell();
    const { card } = this, detail = { name: card.name, scale: key, zoom, by: this };
    if (tell && card.trait("reach")) document.dispatchEvent(new CustomEvent("workbench-zoom", { detail }));
    card.schedule();
  }

  showAll() { for (const key of [...this.zooms.keys()]) this.zoom(key, null); }
}

export default { render };
