// Shares of a row's time by kind of work: what a schedule shows where its spans are too short to
// tell apart. Each column of pixels is filled as high as the kinds kept the lane busy in it.

import { clamp, seconds, worded } from "../../canvas/numbers.js";
import { GAP } from "../../canvas/timeline.js";
import { eachInSight } from "./in_sight.js";
import { ScheduleLooks } from "./looks.js";
import { inRow, shareSums } from "./share_sums.js";

const SHORT = 6; // pixels: spans of less than that in the mean are shown as shares
const WIDE = 4; // pixels of a column
const MARKS = 6; // pixels from one row of marks to the next
const STEPS = 4; // of the sums that a column has at least, for columns of the same length

// The sums of a frame of many spans, where a column of pixels is as long as several of their steps.
function sumsOf(t) {
  const names = ScheduleLooks.groupNames(t.frame), column = WIDE * (t.to - t.from) / (t.width - t.left - GAP);
  const sums = shareSums(t.frame, names.length, (kind) => ScheduleLooks.group(t.frame, kind));
  return sums && column >= STEPS * sums.wide ? sums : null;
}

// Whether the spans in sight are too short to be told apart.
export function areShort(t) {
  const { frame } = t, scale = (t.width - t.left - GAP) / (t.to - t.from || 1), sums = sumsOf(t);
  let count = 0, time = 0;
  if (sums) {
    const [from, to] = [t.from, t.to].map((at) => clamp(Math.round(at / sums.wide), 0, sums.moments));
    for (let row = Math.max(0, Math.ceil(t.first - 1)); row <= t.first + t.fits; row++) {
      const [more, long] = inRow(sums, row, from, to);
      count += more;
      time += long;
    }
    return count > 2 * t.fits && time * scale / count < SHORT;
  }
  eachInSight(frame, t.from, t.to, (i) => {
    const row = frame.span_row[i];
    if (row < t.first - 1 || row > t.first + t.fits || frame.idle[frame.span_kind[i]]) return;
    const from = Math.max(frame.span_start[i], t.from), to = Math.min(frame.span_stop[i], t.to);
    if (to < from) return;
    count += frame.span_count[i];
    time += to - from;
  });
  return count > 2 * t.fits && time * scale / count < SHORT;
}

export class Shares {
  // Of the rows in sight: the share of each column that each kind (or category) takes, by row and
  // layer.
  constructor(t) {
    this.names = ScheduleLooks.groupNames(t.frame);
    this.rows = new Map();
    const sums = sumsOf(t), wide = WIDE * (t.to - t.from) / (t.width - t.left - GAP);
    if (sums) this.fromSums(t, sums, Math.round(wide / sums.wide));
    else this.fromSpans(t, wide);
  }

  // Columns of `each` steps of the sums: they stay where they are when a person pans.
  fromSums(t, sums, each) {
    const groups = this.names.length, begin = Math.floor(t.from / sums.wide / each), wide = each * sums.wide;
    const last = Math.min(Math.ceil(sums.moments / each), Math.ceil(t.to / wide));
    Object.assign(this, { wide, from: begin * wide, columns: Math.max(0, last - begin) });
    for (const [key, own] of sums.byRow) {
      const row = key >> 1;
      if (row < t.first - 1 || row > t.first + t.fits) continue;
      const into = new Float64Array(this.columns * groups);
      for (let c = 0; c < this.columns; c++) {
        const from = Math.min(sums.moments, (begin + c) * each) * groups, to = Math.min(sums.moments, (begin + c + 1) * each) * groups;
        for (let g = 0; g < groups; g++) into[c * groups + g] = Math.max(0, own.sums[to + g] - own.sums[from + g]) / wide;
      }
      this.rows.set(key, into);
    }
  }

  fromSpans(t, wide) {
    const { frame } = t, groups = this.names.length, byKey = [];
    Object.assign(this, { wide, from: t.from, columns: Math.ceil((t.to - t.from) / wide - 1e-9) });
    const { span_row: rows, span_kind: kinds, span_layer: layers, idle } = frame;
    eachInSight(frame, t.from, t.to, (i) => {
      const row = rows[i], kind = kinds[i];
      if (row < t.first - 1 || row > t.first + t.fits || idle[kind]) return;
      const start = (frame.span_start[i] - this.from) / wide, stop = (frame.span_stop[i] - this.from) / wide;
      if (stop < 0 || start > this.columns) return;
      const into = byKey[row * 2 + layers[i]] ||= new Float64Array(this.columns * groups);
      const group = ScheduleLooks.group(frame, kind), last = Math.min(this.columns - 1, Math.ceil(stop) - 1);
      for (let c = Math.max(0, Math.floor(start)); c <= last; c++) {
        into[c * groups + group] += Math.min(stop, c + 1) - Math.max(start, c);
      }
    });
    byKey.forEach((into, key) => this.rows.set(key, into));
  }

  // Kinds and their shares of one column, 0 to 1 together where nothing overlaps.
  *of(row, layer, column) {
    const all = this.rows.get(row * 2 + layer);
    for (let group = 0; all && group < this.names.length; group++) {
      const share = all[column * this.names.length + group];
      if (share > 0) yield [group, share];
    }
  }

  // `boxOf(row, layer)` gives [top, height]; `fill(group, row)` a colour, `pixelsOf` the same as one
  // of a picture, plain and of its mark: a column is one pixel wide and is stretched, so that all
  // columns cost one drawing.
  paint(ctx, t, boxOf, fill, pixelsOf) {
    const wide = (t.width - t.left - GAP) * this.wide / (t.to - t.from), begin = t.x(this.from), { ratio } = t.surface;
    if (ctx.isRecording) {
      this.segments(t, boxOf, (group, row, c, top, high) => {
        ctx.fillStyle = fill(group, row);
        ctx.fillRect(begin + c * wide, top, wide + 0.3, high);
      });
      return;
    }
    const high = Math.max(1, Math.ceil((t.bottom - t.top) * ratio)), across = Math.max(1, this.columns);
    const sheet = new OffscreenCanvas(across, high), brush = sheet.getContext("2d"), image = brush.createImageData(across, high);
    const pixels = new Uint32Array(image.data.buffer), colors = new Map();
    this.segments(t, boxOf, (group, row, c, top, tall) => {
      const key = group * t.frame.lanes + row, from = Math.max(0, Math.round((top - t.top) * ratio));
      if (!colors.has(key)) colors.set(key, pixelsOf(group, row));
      const [color, mark] = colors.get(key), to = Math.min(high, Math.round((top + tall - t.top) * ratio));
      for (let y = from; y < to; y++) pixels[y * across + c] = c & 1 && y % MARKS < 2 ? mark : color;
    });
    brush.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(sheet, begin, t.top, across * wide, high / ratio);
    ctx.imageSmoothingEnabled = true;
  }

  // Calls `act` with every kind's part of every column: group, row, column, top, height.
  segments(t, boxOf, act) {
    const groups = this.names.length;
    for (const [key, all] of this.rows) {
      const row = key >> 1, [top, high] = boxOf(row, key & 1), deep = t.frame.deep[row] || 1;
      if (top + high < t.top || top > t.bottom) continue;
      for (let c = 0; c < this.columns; c++) {
        let base = top + high;
        for (let group = 0; group < groups; group++) {
          const part = Math.min(all[c * groups + group] / deep * high, base - top);
          if (!(part > 0)) continue;
          act(group, row, c, base - part, part);
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
