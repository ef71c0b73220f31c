// Launches and gaps of a profiler's trace: arrows from a call on the host to what it started on a
// device, and a strip in each gap of a stream in the colour of what it waited for.

import { css } from "../../canvas/colors.js";
import { seconds } from "../../canvas/numbers.js";
import { GAP } from "../../canvas/timeline.js";

export const ARROWS = 400; // drawn at once, at most
const STRIP = 4; // pixels of a gap's height
const HEAD = 5; // pixels of an arrow's head
const WAITS = { launch: 1, data: 2, "another stream": 0, starting: 6 }; // hues; unknown is not drawn

const causeWords = (cause) => ({
  launch: "waits for its launch", data: "waits for data (inferred)", "another stream": "waits for another stream (inferred)",
  starting: "the device starts its work", unknown: "no launch is recorded",
}[cause] || cause);

// The causes that gaps in a frame have, with their hues.
export function causesSeen(frame) {
  if (!frame.gap_row) return [];
  const seen = new Set(frame.gap_cause);
  return frame.causes.map((cause, i) => [causeWords(cause), WAITS[cause], i])
    .filter(([, hue, i]) => hue !== undefined && seen.has(i));
}

export function drawGaps(ctx, t) {
  const { frame, colors } = t.card;
  if (!frame.gap_row || t.pitch < 9) return;
  const fills = frame.causes.map((cause) => (WAITS[cause] === undefined ? "" : css(colors.hues[WAITS[cause]])));
  for (let i = 0; i < frame.gap_row.length; i++) {
    const row = frame.gap_row[i], fill = fills[frame.gap_cause[i]];
    if (!fill || row < t.first - 1 || row > t.first + t.fits) continue;
    const left = Math.max(t.left, t.x(frame.gap_start[i])), right = Math.min(t.width - GAP, t.x(frame.gap_stop[i]));
    if (right - left < 1) continue;
    ctx.fillStyle = fill;
    ctx.fillRect(left, t.y(row) + (t.pitch - STRIP) / 2, right - left, STRIP);
  }
}

// The gap at a spot; -1 for none.
export function gapAt(frame, spot) {
  for (let i = 0; frame.gap_row && i < frame.gap_row.length; i++) {
    if (frame.gap_row[i] === spot.lane && frame.gap_start[i] <= spot.time && spot.time <= frame.gap_stop[i]) return i;
  }
  return -1;
}

export function causeOf(frame, gap, whole) {
  const took = frame.gap_stop[gap] - frame.gap_start[gap], words = causeWords(frame.causes[frame.gap_cause[gap]]);
  return took < 0.999 * whole ? `${words} for ${seconds(took)} of it` : words;
}

// Spans that the call at `i` started; of what a call started, itself.
function started(frame, i) {
  if (!frame.span_from_row) return [];
  if (frame.span_from_row[i] >= 0) return [i];
  const row = frame.span_row[i], from = frame.span_start[i], to = frame.span_stop[i], found = [];
  for (let k = 0; k < frame.span_row.length && found.length < ARROWS; k++) {
    const time = frame.span_from_time[k];
    if (frame.span_from_row[k] === row && time >= from && time <= to) found.push(k);
  }
  return found;
}

// Arrows of the span under the pointer or, if `all`, of as many as can be told apart; how many
// there would be.
export function drawLaunches(ctx, t, rows, over, all) {
  const { frame } = t;
  if (!frame.span_from_row || rows.shares) return 0;
  const shown = over >= 0 ? started(frame, over) : [];
  if (all) {
    for (let i = 0; i < frame.span_row.length; i++) {
      if (frame.span_from_row[i] >= 0 && frame.span_start[i] <= t.to && frame.span_from_time[i] >= t.from) shown.push(i);
    }
    if (shown.length > ARROWS) return shown.length;
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(t.left, t.top, t.width - t.left - GAP, t.bottom - t.top);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = css(t.card.colors.ink, over >= 0 ? 1 : 0.55);
  ctx.lineWidth = over >= 0 ? 1.5 : 1;
  for (const i of shown) arrow(ctx, t, rows, i);
  ctx.restore();
  return shown.length;
}

function arrow(ctx, t, rows, i) {
  const { frame } = t, row = frame.span_from_row[i], [top, high] = rows.box(t, i);
  const x = t.x(frame.span_from_time[i]), y = t.y(row) + t.pitch / 2, to = t.x(frame.span_start[i]);
  const up = top > y ? 1 : -1, end = up > 0 ? top : top + high, bend = Math.max(10, Math.abs(to - x) / 2);
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.bezierCurveTo(x + bend, y, to - bend / 4, end - up * 24, to, end - up * HEAD);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(to, end);
  ctx.lineTo(to - HEAD / 1.5, end - up * HEAD);
  ctx.lineTo(to + HEAD / 1.5, end - up * HEAD);
  ctx.fill();
}

// How long after its launch something started; nothing where no launch is known.
export function launchWords(frame, i) {
  if (!frame.span_from_row || frame.span_from_row[i] < 0 || frame.span_count[i] > 1) return [];
  const from = frame.span_from_time[i];
  return [`launched ${seconds(frame.span_start[i] - from)} before, by ${frame.names[frame.span_from_row[i]]}`];
}
