// Shares of a row's time by kind of work: what a schedule shows where its spans are too short to
// tell apart. Each column of pixels is filled as high as the kinds kept the lane busy in it.

import { seconds, worded } from "../../canvas/numbers.js";
import { GAP } from "../../canvas/timeline.js";
import { ScheduleLooks } from "./looks.js";

const SHORT = 6; // pixels: spans of less than that in the mean are shown as shares
const WIDE = 4; // pixels of a column

// Whether the spans in sight are too short to be told apart.
export function areShort(t) {
  const { frame } = t, scale = (t.width - t.left - GAP) / (t.to - t.from || 1);
  let count = 0, time = 0;
  for (let i = 0; i < frame.span_row.length; i++) {
    const row = frame.span_row[i];
    if (row < t.first - 1 || row > t.first + t.fits || frame.idle[frame.span_kind[i]]) continue;
    const from = Math.max(frame.span_start[i], t.from), to = Math.min(frame.span_stop[i], t.to);
    if (to < from) continue;
    count += frame.span_count[i];
    time += to - from;
  }
  return count > 2 * t.fits && time * scale / count < SHORT;
}

export class Shares {
  // Of the rows in sight: the share of each column that each kind (or category) takes, by row and
  // layer.
  constructor(t) {
    const { frame } = t;
    this.wide = WIDE * (t.to - t.from) / (t.width - t.left - GAP); // seconds of a column
    Object.assign(this, { from: t.from, columns: Math.ceil((t.to - t.from) / this.wide - 1e-9), rows: new Map() });
    this.names = ScheduleLooks.groupNames(frame);
    const groups = this.names.length;
    for (let i = 0; i < frame.span_row.length; i++) {
      const row = frame.span_row[i], kind = frame.span_kind[i];
      if (row < t.first - 1 || row > t.first + t.fits || frame.idle[kind]) continue;
      const start = (frame.span_start[i] - this.from) / this.wide, stop = (frame.span_stop[i] - this.from) / this.wide;
      if (stop < 0 || start > this.columns) continue;
      const key = row * 2 + frame.span_layer[i];
      if (!this.rows.has(key)) this.rows.set(key, new Float64Array(this.columns * groups));
      const group = ScheduleLooks.group(frame, kind), into = this.rows.get(key), last = Math.min(this.columns - 1, Math.ceil(stop) - 1);
      for (let c = Math.max(0, Math.floor(start)); c <= last; c++) {
        into[c * groups + group] += Math.min(stop, c + 1) - Math.max(start, c);
      }
    }
  }

  // Kinds and their shares of one column, 0 to 1 together where nothing overlaps.
  *of(row, layer, column) {
    const all = this.rows.get(row * 2 + layer);
    for (let group = 0; all && group < this.names.length; group++) {
      const share = all[column * this.names.length + group];
      if (share > 0) yield [group, share];
    }
  }

  // `boxOf(row, layer)` gives [top, height]; `fill(group, row)` a colour.
  paint(ctx, t, boxOf, fill) {
    const wide = (t.width - t.left - GAP) * this.wide / (t.to - t.from);
    for (const key of this.rows.keys()) {
      const row = key >> 1, layer = key & 1, [top, high] = boxOf(row, layer), deep = t.frame.deep[row] || 1;
      if (top + high < t.top || top > t.bottom) continue;
      for (let c = 0; c < this.columns; c++) {
        let base = top + high;
        const left = t.left + c * wide;
        for (const [group, share] of this.of(row, layer, c)) {
          const part = Math.min(share / deep * high, base - top);
          ctx.fillStyle = fill(group, row);
          ctx.fillRect(left, base - part, wide + 0.3, part);
          base -= part;
        }
      }
    }
  }

  // What a spot says: the column's kinds with their shares, most first.
  words(t, spot, layer) {
    const { frame } = t, column = Math.floor((spot.time - this.from) / this.wide);
    const begin = this.from + column * this.wide, list = [...this.of(spot.lane, layer, column)];
    list.sort((a, b) => b[1] - a[1]);
    const busy = list.reduce((sum, [, share]) => sum + share, 0);
    const lines = list.map(([group, share]) => `${this.names[group]}: ${worded(share, "%")}`);
    if ((frame.deep[spot.lane] || 1) < 2 && busy < 0.9995) lines.push(`idle: ${worded(1 - busy, "%")}`);
    return [`${frame.names[spot.lane]}: shares of ${seconds(this.wide)}`, ...lines,
      `from ${seconds(begin, t.to)}; zoom in to see each`];
  }
}
