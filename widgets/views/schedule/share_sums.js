// Sums of the work of each row and kind up to each of very many moments of a run, made once a
// frame: the shares of any stretch between two of them are differences, however many spans it has.

import { clamp } from "../../canvas/numbers.js";

const FEW = 20_000; // spans that are summed up anew at every picture
const NUMBERS = 4e6; // kept at most
const MOMENTS = [1024, 8192];

const frameSums = new WeakMap();

// {wide (seconds between moments), moments, groups, byRow: row * 2 + layer -> {sums, counts}}; null of a
// frame of few spans, or of so many rows and kinds that the moments would be too few.
export function shareSums(frame, groups, groupOf) {
  if (!frameSums.has(frame)) frameSums.set(frame, sumUp(frame, groups, groupOf));
  return frameSums.get(frame);
}

function sumUp(frame, groups, groupOf) {
  const { span_row: row, span_kind: kind, span_layer: layer, span_start: start, span_stop: stop } = frame;
  const moments = Math.min(MOMENTS[1], Math.floor(NUMBERS / (frame.lanes * frame.layers * (groups + 1))));
  if (row.length < FEW || moments < MOMENTS[0] || !(frame.now > 0)) return null;
  const byRow = new Map(), wide = frame.now / moments;
  for (let i = 0; i < row.length; i++) {
    if (frame.idle[kind[i]]) continue;
    const key = row[i] * 2 + layer[i], group = groupOf(kind[i]);
    if (!byRow.has(key)) byRow.set(key, { sums: new Float64Array((moments + 1) * groups), counts: new Float64Array(moments + 1) });
    const { sums, counts } = byRow.get(key), from = start[i] / wide, to = Math.min(moments, stop[i] / wide);
    const first = clamp(Math.floor(from), 0, moments - 1);
    counts[first + 1] += frame.span_count[i];
    for (let b = first; b < to; b++) sums[(b + 1) * groups + group] += (Math.min(to, b + 1) - Math.max(from, b)) * wide;
  }
  for (const { sums, counts } of byRow.values()) {
    for (let i = groups; i < sums.length; i++) sums[i] += sums[i - groups];
    for (let i = 1; i < counts.length; i++) counts[i] += counts[i - 1];
  }
  return { wide, moments, groups, byRow };
}

// How many spans began, and how long all worked, between two moments (places) in a row's layers.
export function inRow(sums, row, from, to) {
  let count = 0, time = 0;
  for (const key of [row * 2, row * 2 + 1]) {
    const own = sums.byRow.get(key);
    if (!own) continue;
    count += own.counts[to] - own.counts[from];
    for (let g = 0; g < sums.groups; g++) time += own.sums[to * sums.groups + g] - own.sums[from * sums.groups + g];
  }
  return [count, time];
}
