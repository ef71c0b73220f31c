// One plot of a picture (widgets/chart/picture.py): its axes, lines, limits and readings, and the names at
// the ends of its lines.

import { NAME_LINE, linesAcross, namesAtEnds, spreadOut } from "../canvas/axes.js";
import { css, mix } from "../canvas/colors.js";
import { countBelow, worded } from "../canvas/numbers.js";
import { Scale } from "../canvas/scales.js";
import { fit } from "../canvas/text.js";

const PLOT_HEAD = 21;
const PLOT_LEFT = 52;
export const NAME_ROOM = 0.3;
export const READ_ROOM = 62;
const MOMENT = 3; // pixels: a line less wide is a dot
const SIDE = 0.58; // of the width: texts of points further right stand on their left

export class Plot {
  constructor(card, spec, place) {
    Object.assign(this, { card, spec, place });
    const { frame } = card, part = (values, { first, count }) => values.subarray(first, first + count);
    this.owners = part(frame.owner, { first: spec.owner_first, count: spec.owner_count });
    this.lines = spec.lines.map((line) => ({ ...line, xs: part(frame.x, line), ys: part(frame.y, line) }));
  }

  color(line) {
    const { colors } = this.card;
    const own = line.hue === null ? colors.ink : colors.hues[line.hue % colors.hues.length];
    return line.faint ? mix(own, colors.paper, 0.35) : own;
  }

  // Pixels that the names of its lines want on the right.
  wish(ctx) {
    if (this.spec.readings.length) return READ_ROOM;
    const named = this.spec.timed ? this.lines : [];
    return Math.max(8, ...named.map(({ name }) => Math.ceil(ctx.measureText(name).width) + 12));
  }

  // Lay the plot out in a box, showing x from `from` to `to`; `room`: pixels right of its lines.
  lay(box, room, foot, [from, to]) {
    const { spec } = this;
    const [left, right] = [box.x + PLOT_LEFT, Math.max(box.x + PLOT_LEFT + 20, box.x + box.width - room)];
    const [top, bottom] = [box.y + PLOT_HEAD, Math.max(box.y + PLOT_HEAD + 10, box.y + box.height - foot)];
    Object.assign(this, { box, room, left, right, top, bottom, from, to });
    this.x = new Scale(from, to, false, left, right, spec.x_unit);
    this.y = new Scale(0, spec.top, false, bottom - 1, top + 1, spec.y_unit);
  }

  has(x, y) {
    return x >= this.left - 4 && x <= this.right + 4 && y >= this.top - 4 && y <= this.bottom + 4;
  }

  // The indices of a line's points that are in sight, and one more on each side.
  seen(line) {
    return [Math.max(0, countBelow(line.xs, this.from) - 1), Math.min(line.count, countBelow(line.xs, this.to) + 1)];
  }

  // The value of a line at `x`; null before its first point and after its last.
  value(line, x) {
    const next = countBelow(line.xs, x * (1 + 1e-12));
    if (!next || next > line.count || x > line.xs[line.count - 1] * (1 + 1e-9)) return null;
    const before = next - 1;
    if (line.step || next === line.count) return line.ys[before];
    const share = (x - line.xs[before]) / (line.xs[next] - line.xs[before] || 1);
    return line.ys[before] + share * (line.ys[next] - line.ys[before]);
  }

  draw(ctx) {
    const { colors } = this.card, { spec } = this;
    ctx.font = `600 12px ${colors.font}`;
    ctx.fillStyle = css(colors.ink);
    ctx.fillText(fit(ctx, spec.title, this.box.width - 8), this.left, this.box.y + 8);
    ctx.font = `12px ${colors.font}`;
    if (spec.readings.length) this.readings(ctx);
    else linesAcross(ctx, colors, this, this.y.labels(Math.max(2, Math.floor((this.bottom - this.top) / 34)), false));
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.left - 2, this.top - 2, this.right - this.left + 4, this.bottom - this.top + 4);
    ctx.clip();
    for (const limit of spec.limits) this.limit(ctx, limit);
    for (const line of this.lines) this.line(ctx, line);
    ctx.restore();
    for (const line of this.lines) this.moment(ctx, line);
    this.names(ctx);
    for (const { x, y } of spec.readings) if (x !== null) this.dot(ctx, x, y, colors.ink, 3.5);
  }

  // Heights that matter in place of round ones: named on the left, told on the right.
  readings(ctx) {
    const { colors } = this.card, { readings } = this.spec;
    linesAcross(ctx, colors, this, readings.map(({ y }) => [y, ""]));
    const sorted = [...readings].sort((a, b) => b.y - a.y);
    const heights = spreadOut(sorted.map(({ y }) => this.y.at(y)), NAME_LINE, this.top, this.bottom);
    ctx.fillStyle = css(colors.faint);
    sorted.forEach(({ name, value }, i) => {
      ctx.textAlign = "right";
      ctx.fillText(name, this.left - 6, heights[i]);
      ctx.textAlign = "left";
      ctx.fillText(value, this.right + 8, heights[i]);
    });
  }

  line(ctx, line) {
    const [first, last] = this.seen(line), { xs, ys, step } = line;
    if (last - first < 1) return;
    const x0 = this.x.at(0), perX = this.x.at(1) - x0, y0 = this.y.at(0), perY = this.y.at(1) - y0;
    ctx.strokeStyle = css(this.color(line));
    ctx.lineWidth = 1.6;
    ctx.lineJoin = "round";
    if (line.modelled) ctx.setLineDash([6, 3]);
    ctx.beginPath();
    let before = y0 + perY * ys[first];
    ctx.moveTo(x0 + perX * xs[first], before);
    for (let i = first + 1; i < last; i++) {
      const x = x0 + perX * xs[i], y = y0 + perY * ys[i];
      if (step) ctx.lineTo(x, before);
      ctx.lineTo(x, y);
      before = y;
    }
    ctx.stroke();
    ctx.setLineDash([]);
  }

  // What was said at one moment only, mostly a run's last, is no line to see: a dot.
  moment(ctx, line) {
    const [first, last] = this.seen(line), { xs, ys } = line;
    if (last - first < 1 || this.x.at(xs[last - 1]) - this.x.at(xs[first]) > MOMENT) return;
    this.dot(ctx, xs[last - 1], ys[last - 1], this.color(line), 3.5);
  }

  // Names of lines over time, beside where they end.
  names(ctx) {
    if (!this.spec.timed) return;
    const named = [];
    for (const line of this.lines) {
      const [first, last] = this.seen(line);
      const end = Math.min(this.to, line.xs[last - 1]), value = last > first ? this.value(line, end) : null;
      if (value !== null) named.push({ text: line.name, y: this.y.at(value), color: this.color(line) });
    }
    namesAtEnds(ctx, this.card.colors, this, named, this.room - 10);
  }

  limit(ctx, { value, text, vertical }) {
    const { colors } = this.card, wide = ctx.measureText(text).width;
    ctx.strokeStyle = ctx.fillStyle = css(colors.faint);
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    const at = Math.round(vertical ? this.x.at(value) : this.y.at(value)) + 0.5;
    if (vertical) {
      ctx.moveTo(at, this.top);
      ctx.lineTo(at, this.bottom);
    } else {
      ctx.moveTo(this.left, at);
      ctx.lineTo(this.right, at);
    }
    ctx.stroke();
    ctx.setLineDash([]);
    const far = vertical && at + wide + 8 > this.right;
    const x = vertical ? Math.max(this.left + 2, far ? at - wide - 4 : at + 4) : this.left + 4;
    this.text(ctx, text, x, vertical ? this.bottom - 9 : at + 9, colors.faint);
  }

  // Words on a plot, readable over its lines.
  text(ctx, text, x, y, color) {
    ctx.fillStyle = css(this.card.colors.paper, 0.75);
    ctx.fillRect(x - 2, y - 8, ctx.measureText(text).width + 4, 15);
    ctx.fillStyle = css(color);
    ctx.fillText(text, x, y);
  }

  dot(ctx, x, y, color, radius) {
    const at = this.x.at(x);
    if (at < this.left - 1 || at > this.right + 1) return;
    ctx.beginPath();
    ctx.arc(at, this.y.at(y), radius, 0, 7);
    ctx.fillStyle = css(color);
    ctx.fill();
    ctx.lineWidth = 1.5;
    ctx.strokeStyle = css(this.card.colors.paper);
    ctx.stroke();
  }

  // What is marked with words: what the host marked, or the chosen owner's own point.
  marks() {
    const { spec, lines: [line] } = this, { chosen } = this.card;
    if (spec.dots.length || !chosen) return spec.dots;
    const i = this.owners.indexOf(this.card.frame.names.indexOf(chosen));
    if (i < 0 || !line || i >= line.count) return [];
    return [{ x: line.xs[i], y: line.ys[i], text: `${chosen}  ${worded(line.xs[i], spec.x_unit)}` }];
  }

  marked(ctx) {
    const { colors } = this.card;
    for (const { x, y, text } of this.marks()) {
      this.dot(ctx, x, y, colors.ink, 4);
      const at = this.x.at(x), wide = ctx.measureText(text).width;
      const far = at - this.left > SIDE * (this.right - this.left) && at - wide - 10 > this.left;
      this.text(ctx, text, far ? at - wide - 9 : at + 9, Math.min(this.y.at(y) + 12, this.bottom - 8), colors.ink);
    }
  }

  owner(place) { return this.card.frame.names[this.owners[place]] || ""; }

  // The place of the point nearest to a pixel on a line whose points are owners; -1 far from all.
  nearest(x, y) {
    const [line] = this.lines;
    let best = -1, least = 24;
    for (let i = 0; line && i < Math.min(line.count, this.owners.length); i++) {
      const away = Math.hypot(this.x.at(line.xs[i]) - x, this.y.at(line.ys[i]) - y);
      if (this.owners[i] && away < least) [best, least] = [i, away];
    }
    return best;
  }
}
