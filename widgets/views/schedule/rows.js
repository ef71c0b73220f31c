// The spans of a schedule in their rows, drawn once and kept until something about them changes.

import { css, mix, textOn } from "../../canvas/colors.js";
import { hatch, hatchBand } from "../../canvas/texture.js";
import { GAP } from "../../canvas/timeline.js";
import { eachInSight } from "./in_sight.js";
import { drawGaps } from "./launches.js";
import { drawMessages, messageGround, stripRoom } from "./messages.js";
import { Shares, areShort } from "./shares.js";

const REAL_SHARE = 0.66; // of a row's height, where the modelled spans stand below the measured ones

// Those in sight, by start; into a file by colour, so that each colour is written once.
function drawingOrder(ctx, t, looks) {
  const order = [];
  eachInSight(t.frame, t.from, t.to, (i) => { order.push(i); });
  if (!ctx.isRecording) return order;
  const places = new Map(order.map((i) => [i, looks.place(i)]));
  return order.sort((a, b) => places.get(a) - places.get(b));
}

export class ScheduleRows {
  constructor(card) {
    this.card = card;
    this.kept = null; // a canvas with the rows as they were last drawn
    this.shares = null; // of the rows in sight, where spans are too short to be told apart
    this.key = "";
  }

  // The tasks and lanes that are lit; null where nothing is chosen here.
  lit() {
    const { frame, chosen } = this.card;
    const task = chosen ? frame.tasks.indexOf(chosen) : -1;
    const row = chosen ? frame.names.indexOf(chosen) : -1;
    return task < 0 && row < 0 ? null : { task, row };
  }

  isLit(i, lit) {
    return !lit || this.card.frame.span_row[i] === lit.row
      || (lit.task >= 0 && this.card.frame.span_task[i] === lit.task);
  }

  // [top, height] of a layer of a row.
  band(t, row, layer) {
    const gap = t.pitch < 9 ? 1 : 4, top = t.y(row) + gap / 2, high = t.pitch - gap - stripRoom(t);
    if (this.card.frame.layers < 2) return [top, high];
    if (layer) return [top + high * REAL_SHARE, high * (1 - REAL_SHARE)];
    return [top, high * REAL_SHARE - (t.pitch > 12 ? 1 : 0)];
  }

  // [top, height] of a span in its row.
  box(t, i) {
    const { frame } = this.card, row = frame.span_row[i], [top, high] = this.band(t, row, frame.span_layer[i]);
    const deep = frame.deep[row] || 1, each = high / deep;
    return [top + frame.span_depth[i] * each, deep > 1 ? each - (each > 6 ? 1 : 0) : high];
  }

  // Onto the view's canvas, from the kept one where nothing but the cursor has moved.
  show(ctx, t, looks) {
    if (ctx.isRecording) return this.paint(ctx, t, looks);
    const { card } = this, { canvas, ratio } = t.surface;
    const key = [t.from, t.to, t.first, canvas.width, canvas.height, t.top, t.pitch, card.chosen].join();
    if (key !== this.key || this.frame !== card.frame || this.looks !== looks) {
      Object.assign(this, { key, frame: card.frame, looks });
      this.kept ||= document.createElement("canvas");
      this.kept.width = canvas.width;
      this.kept.height = canvas.height;
      const brush = this.kept.getContext("2d");
      brush.scale(ratio, ratio);
      brush.font = ctx.font;
      brush.textBaseline = "middle";
      this.paint(brush, t, looks);
    }
    return ctx.drawImage(this.kept, 0, 0, t.width, canvas.height / ratio);
  }

  paint(ctx, t, looks) {
    const { frame, colors } = this.card, lit = this.lit();
    ctx.save();
    ctx.beginPath();
    ctx.rect(t.left, t.top, t.width - t.left - GAP, t.bottom - t.top);
    ctx.clip();
    this.ground(ctx, t, looks);
    if (frame.modelled) hatchBand(ctx, colors, t.left, t.top, t.width - t.left - GAP, t.bottom - t.top);
    messageGround(ctx, t);
    this.shares = areShort(t) ? new Shares(t) : null;
    if (!this.shares) drawGaps(ctx, t);
    const isRowLit = (row) => !lit || row === lit.row;
    this.shares?.paint(ctx, t, (row, layer) => this.band(t, row, layer),
      (group, row) => looks.ofGroup(ctx, group, isRowLit(row)), (group, row) => looks.pixelsOf(group, isRowLit(row)));
    const shown = [];
    let color = "";
    for (const i of this.shares ? this.ofTask(lit) : drawingOrder(ctx, t, looks)) {
      const [top, high] = this.box(t, i);
      if (top + high < t.top || top > t.bottom) continue;
      const left = t.x(frame.span_start[i]), right = t.x(frame.span_stop[i]);
      if (right < t.left || left > t.width) continue;
      const width = Math.max(0.8, right - left - (right - left > 3 ? 1 : 0)), place = looks.place(i);
      const fill = looks.fill(ctx, place, this.isLit(i, lit));
      if (fill !== color) ctx.fillStyle = color = fill; // to set it costs more than to fill
      ctx.fillRect(left, top, width, high);
      const seen = Math.min(left + width, t.width - GAP) - Math.max(left, t.left); // where its words stand
      if (seen > 9 && high >= 12) shown.push([i, left, top, seen, high, place]);
    }
    drawMessages(ctx, t, lit);
    if (frame.layers > 1) this.hatched(ctx, t);
    for (const [i, left, top, seen, high, place] of shown) {
      const text = this.label(ctx, i, seen - 4);
      if (!text) continue;
      const own = this.isLit(i, lit) ? looks.solid[place] : mix(looks.solid[place], colors.paper, 0.78);
      ctx.fillStyle = css(textOn(own), this.isLit(i, lit) ? 1 : 0.5);
      ctx.fillText(text, Math.max(left, t.left) + 3, top + high / 2 + 0.5);
    }
    ctx.restore();
  }

  // Over shares: the spans of the task that is lit.
  ofTask(lit) {
    const { frame } = this.card;
    return lit && lit.task >= 0 ? Array.from(frame.span_row.keys()).filter((i) => frame.span_task[i] === lit.task) : [];
  }

  // Each lane idle from the first span to the last.
  ground(ctx, t, looks) {
    if (this.card.frame.turns) return; // a job that waits for the machine is not idle
    const { frame } = this.card, gap = t.pitch < 9 ? 1 : 4;
    const left = Math.max(t.left, t.x(frame.begin)), right = Math.min(t.width - GAP, t.x(frame.now));
    ctx.fillStyle = looks.idle;
    for (const lane of t.visible()) {
      ctx.fillRect(left, t.y(lane) + gap / 2, Math.max(0, right - left), t.pitch - gap - stripRoom(t));
    }
  }

  // The modelled layer under a measured one is a band of its own in each row, hatched in the paper's
  // colour: between its spans it does not show.
  hatched(ctx, t) {
    const { frame, colors } = this.card, gap = t.pitch < 9 ? 1 : 4, high = t.pitch - gap - stripRoom(t);
    const right = Math.min(t.width - GAP, t.x(frame.now)), paper = mix(colors.paper, colors.idle, 0.15);
    for (const lane of t.visible()) {
      const top = t.y(lane) + gap / 2, skip = high * REAL_SHARE;
      hatch(ctx, t.left, top + skip, right - t.left, high - skip, paper);
    }
  }

  // What fits of: name and task, the task alone, the name alone.
  label(ctx, i, room) {
    const { frame } = this.card;
    if (frame.span_count[i] > 1) return "";
    const kind = frame.kinds[frame.span_kind[i]], task = frame.span_task[i];
    const bare = task < 0 ? "" : frame.tasks[task].replace(/^(mb|task) (?=\d+$)/, "");
    const kept = frame.tags[frame.span_tag[i]]?.match(/^drafts=(\d+) kept=(\d+)/); // of a verification
    const options = bare.startsWith(kind) ? [bare] // a task that says what is done for it
      : bare ? [`${kind} ${bare}`, bare]
      : kept ? [`${kind}: ${kept[2]} of ${kept[1]} kept`, `${kept[2]}/${kept[1]}`] : [kind];
    return options.find((text) => text.length * 4 < room && ctx.measureText(text).width <= room) || "";
  }

  // Which layer of its row a spot lies in.
  layerAt(t, spot) {
    const [top] = this.band(t, spot.lane, 1);
    return this.card.frame.layers > 1 ? Number(spot.y >= top) : this.onlyLayer;
  }

  // Where all spans are of one layer: which.
  get onlyLayer() { return this.card.frame.span_layer[0] || 0; }

  // The span under a spot: the deepest one there, of the layer under the pointer.
  at(t, spot) {
    const { frame } = this.card, near = 1.5 * (t.to - t.from) / t.width;
    let found = -1;
    for (let i = 0; i < frame.span_row.length; i++) {
      if (frame.span_row[i] !== spot.lane) continue;
      if (frame.span_start[i] - near > spot.time || frame.span_stop[i] + near < spot.time) continue;
      const [top, high] = this.box(t, i);
      if (spot.y < top - 2 || spot.y > top + high + 2) continue;
      const inside = frame.span_start[i] <= spot.time && frame.span_stop[i] >= spot.time;
      if (found < 0 || inside) found = i;
    }
    return found;
  }
}
