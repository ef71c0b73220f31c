// Messages of a schedule: a strip under each lane with what it sent above what it received; the one
// under the pointer is drawn from its sender's strip to its receiver's.

import { css, mix } from "../../canvas/colors.js";
import { grouped, seconds, worded } from "../../canvas/numbers.js";
import { GAP } from "../../canvas/timeline.js";

export const MESSAGE_SIDES = [["sent", 4], ["received", 5]]; // words and hues of the two halves of a strip
const STRIP_ROOMS = [[30, 14], [20, 9], [12, 6], [0, 3]]; // pixels of a strip in rows of at least so many
const STRIP_APART = 2; // pixels between a lane's work and its strip
const UNLIT = 0.2; // of a message that is not lit
const THIN_MESSAGE = 0.8; // of one shorter than a pixel, at least
const NEAR_MESSAGE = 3; // pixels beside a message within which the pointer means it

// Pixels that a row keeps for its strip; 0 where nothing is sent.
export function stripRoom(t) {
  return t.card.frame.move_row ? STRIP_ROOMS.find(([pitch]) => t.pitch >= pitch)[1] : 0;
}

// [top, height] of one half of a row's strip.
function stripHalf(t, row, side) {
  const room = stripRoom(t), each = (room - (room > 4 ? STRIP_APART : 0)) / 2;
  return [t.y(row) + t.pitch - (t.pitch < 9 ? 0 : 2) - (2 - side) * each, each];
}

// The ground of each row's strip.
export function messageGround(ctx, t) {
  const { frame, colors } = t.card;
  if (!frame.move_row || t.pitch < 12) return;
  ctx.fillStyle = css(mix(colors.paper, colors.idle, 0.25));
  const left = Math.max(t.left, t.x(frame.begin)), wide = Math.min(t.width - GAP, t.x(frame.now)) - left;
  for (const row of t.visible()) {
    const [top, high] = stripHalf(t, row, 0);
    ctx.fillRect(left, top, Math.max(0, wide), 2 * high);
  }
}

export function drawMessages(ctx, t, lit) {
  const { frame, colors } = t.card;
  if (!frame.move_row) return;
  const fills = MESSAGE_SIDES.map(([, hue]) => [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    .map((part) => css(colors.hues[hue], part)));
  for (let i = 0; i < frame.move_row.length; i++) {
    const row = frame.move_row[i];
    if (row < t.first - 1 || row > t.first + t.fits) continue;
    const from = Math.max(t.left, t.x(frame.move_start[i])), right = Math.min(t.width - GAP, t.x(frame.move_stop[i]));
    if (right < from) continue;
    const isLit = !lit || row === lit.row || (lit.task >= 0 && frame.move_task[i] === lit.task);
    const [top, high] = stripHalf(t, row, frame.move_side[i]);
    const seen = isLit ? Math.min(1, Math.max(THIN_MESSAGE, right - from)) : UNLIT;
    ctx.fillStyle = fills[frame.move_side[i]][Math.round(10 * seen)];
    ctx.fillRect(from, top, Math.max(1, right - from), Math.max(1, high - (high > 2.5 ? 0.5 : 0)));
  }
}

// The message under a spot of a strip; -1 for none.
export function messageAt(t, spot) {
  const { frame } = t;
  if (!frame.move_row || spot.lane < 0 || spot.x < t.left) return -1;
  const [top] = stripHalf(t, spot.lane, 0);
  if (spot.y < top - 1) return -1;
  const [second] = stripHalf(t, spot.lane, 1), side = spot.y >= second ? 1 : 0;
  let found = -1, close = NEAR_MESSAGE;
  for (let i = 0; i < frame.move_row.length; i++) {
    if (frame.move_row[i] !== spot.lane || frame.move_side[i] !== side) continue;
    const off = Math.max(t.x(frame.move_start[i]) - spot.x, spot.x - t.x(frame.move_stop[i]), 0);
    if (off < close) [found, close] = [i, off];
    if (off === 0 && found === i) break;
  }
  return found;
}

export function messageWords(t, i) {
  const { frame } = t, ends = [frame.names[frame.move_row[i]], frame.names[frame.move_other[i]]];
  if (frame.move_side[i]) ends.reverse();
  const start = frame.move_start[i], stop = frame.move_stop[i], took = stop - start, bytes = frame.move_bytes[i];
  if (frame.move_count[i] > 1) {
    return [`${grouped(frame.move_count[i])} messages, the longest from ${ends[0]} to ${ends[1]}`,
      `${worded(bytes, "B")} together, from ${seconds(start)}`, "zoom in to see each"];
  }
  const about = frame.move_task[i] < 0 ? "" : `, ${frame.tasks[frame.move_task[i]]}`;
  return [`message${about}`, `from ${ends[0]} to ${ends[1]}: ${worded(bytes, "B")}`,
    `${seconds(took)} from ${seconds(start, stop)}${took > 0 ? `, ${worded(bytes / took, "B/s")}` : ""}`];
}

// A line from where a message was sent to where it was received.
export function drawMessage(ctx, t, i) {
  const { frame, card } = t, side = frame.move_side[i], rows = [frame.move_row[i], frame.move_other[i]];
  if (frame.move_count[i] > 1) return;
  if (side) rows.reverse();
  const [from, to] = rows.map((row, end) => { const [top, high] = stripHalf(t, row, end); return top + high / 2; });
  ctx.strokeStyle = ctx.fillStyle = css(card.colors.ink);
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.moveTo(t.x(frame.move_start[i]), from);
  ctx.lineTo(t.x(frame.move_stop[i]), to);
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(t.x(frame.move_stop[i]), to, 3, 0, 7);
  ctx.fill();
}
