// Which spans of a frame lie in a stretch of time, without a look at all of them at every picture.

const BLOCK = 256; // spans that are looked at together

const spanIndexes = new WeakMap(); // frame -> its spans by start, and from when to when each block lies

function indexOf(frame) {
  let found = spanIndexes.get(frame);
  if (found) return found;
  const { span_start: start, span_stop: stop } = frame, count = start.length;
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = 1; i < count; i++) {
    if (start[i] >= start[i - 1]) continue;
    order.sort((a, b) => start[a] - start[b]);
    break;
  }
  const first = [], last = [];
  for (let from = 0; from < count; from += BLOCK) {
    let end = -Infinity;
    for (let i = from; i < Math.min(count, from + BLOCK); i++) end = Math.max(end, stop[order[i]]);
    first.push(start[order[from]]);
    last.push(end);
  }
  found = { order, first, last };
  spanIndexes.set(frame, found);
  return found;
}

// Calls `act` with each span of `frame` that may lie between two moments, in order of start.
export function eachInSight(frame, from, to, act) {
  const { order, first, last } = indexOf(frame);
  for (let block = 0; block < first.length && first[block] <= to; block++) {
    if (last[block] < from) continue;
    const end = Math.min(order.length, (block + 1) * BLOCK);
    for (let i = block * BLOCK; i < end; i++) act(order[i]);
  }
}
