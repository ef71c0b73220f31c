// Memory of one lane under the schedule, on the same time axis: kinds stacked, the limit as a line.

import { css } from "../../canvas/colors.js";
import { countBelow, worded } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { hatchBand } from "../../canvas/texture.js";
import { GAP } from "../../canvas/timeline.js";

// Hues of kinds by their place in the stack: neighbours differ in lightness; those of passes come last.
const STACKED = [4, 7, 5, 6, 2, 3, 0, 1];

export const MEMORY_HIGH = 86;
export const MEMORY_HEAD = 22;

// The lane whose memory shows: the one under the pointer or chosen, else the fullest.
export function memoryLane(frame, wanted) {
  if (!frame.memory_count) return -1;
  if (wanted >= 0 && frame.memory_count[wanted]) return wanted;
  let best = -1;
  for (let row = 0; row < frame.memory_peak.length; row++) {
    if (frame.memory_count[row] && (best < 0 || frame.memory_peak[row] > frame.memory_peak[best])) best = row;
  }
  return best;
}

function memoryColor(colors, place) {
  return colors.hues[STACKED[place % STACKED.length]];
}

// Bytes of each kind of a lane at a moment.
export function memoryAt(frame, row, time) {
  const first = frame.memory_first[row], count = frame.memory_count[row], all = frame.memory_time.length;
  const at = countBelow(frame.memory_time.subarray(first, first + count), time + 1e-12) - 1;
  return frame.memory_kinds.map((_, kind) => (at < 0 ? 0 : frame.memory_value[kind * all + first + at]));
}

export function drawMemory(ctx, t, row, top) {
  const { frame, colors } = { frame: t.frame, colors: t.card.colors };
  const base = top + MEMORY_HEAD + MEMORY_HIGH, first = frame.memory_first[row], all = frame.memory_time.length;
  const count = frame.memory_count[row], kinds = frame.memory_kinds, right = t.width - GAP;
  const most = Math.max(frame.memory_limit, frame.memory_peak[row], 1) * 1.04;
  const y = (bytes) => base - bytes / most * MEMORY_HIGH;
  memoryHead(ctx, t, row, top);
  ctx.save();
  ctx.beginPath();
  ctx.rect(t.left, top + MEMORY_HEAD - 4, right - t.left, MEMORY_HIGH + 4);
  ctx.clip();
  if (frame.modelled) hatchBand(ctx, colors, t.left, top + MEMORY_HEAD - 4, right - t.left, MEMORY_HIGH + 4);
  const below = new Float64Array(count), end = t.x(frame.now);
  for (let kind = 0; kind < kinds.length; kind++) {
    const value = (i) => frame.memory_value[kind * all + first + i], x = (i) => t.x(frame.memory_time[first + i]);
    ctx.beginPath();
    for (let i = 0; i < count; i++) {
      if (i === 0) ctx.moveTo(x(0), y(below[0] + value(0)));
      else ctx.lineTo(x(i), y(below[i] + value(i)));
      ctx.lineTo(i + 1 < count ? x(i + 1) : end, y(below[i] + value(i)));
    }
    for (let i = count - 1; i >= 0; i--) {
      ctx.lineTo(i + 1 < count ? x(i + 1) : end, y(below[i]));
      ctx.lineTo(x(i), y(below[i]));
    }
    ctx.fillStyle = css(memoryColor(colors, kind));
    ctx.fill();
    for (let i = 0; i < count; i++) below[i] += value(i);
  }
  ctx.restore();
  memoryAxis(ctx, t, row, base, y);
}

// The lane's name and its kinds with what each holds at the cursor.
function memoryHead(ctx, t, row, top) {
  const { frame, card } = t, { colors } = card, held = memoryAt(frame, row, card.cursor);
  ctx.font = `600 12px ${colors.font}`;
  ctx.fillStyle = css(colors.ink);
  ctx.fillText("Memory", 0, top + 8);
  const name = fit(ctx, frame.names[row], 160);
  ctx.fillText(name, t.left, top + 8);
  let at = t.left + ctx.measureText(name).width + 18;
  ctx.font = `12px ${colors.font}`;
  for (let kind = 0; kind < held.length; kind++) {
    const text = `${frame.memory_kinds[kind]} ${worded(held[kind], "B")}`, width = ctx.measureText(text).width;
    if (at + width + 20 > t.width - GAP) break;
    ctx.fillStyle = css(memoryColor(colors, kind));
    ctx.fillRect(at, top + 3, 10, 10);
    ctx.fillStyle = css(colors.faint);
    ctx.fillText(text, at + 15, top + 8);
    at += width + 32;
  }
}

function memoryAxis(ctx, t, row, base, y) {
  const { frame, card } = t, { colors } = card, right = t.width - GAP;
  ctx.strokeStyle = css(colors.idle);
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(t.left, base + 0.5);
  ctx.lineTo(right, base + 0.5);
  ctx.stroke();
  ctx.fillStyle = css(colors.faint);
  ctx.textAlign = "right";
  ctx.fillText("0", t.left - 6, base);
  const peak = frame.memory_peak[row];
  const taken = [base]; // the limit first: where the peak comes close to it, it goes unnamed
  for (const mark of [frame.memory_limit, peak].filter((bytes) => bytes > 0)) {
    const at = y(mark);
    if (taken.some((other) => Math.abs(other - at) < 14)) continue;
    ctx.fillText(worded(mark, "B"), t.left - 6, at);
    taken.push(at);
  }
  ctx.textAlign = "left";
  if (frame.memory_limit) {
    const at = Math.round(y(frame.memory_limit)) + 0.5;
    ctx.setLineDash([2, 3]);
    ctx.strokeStyle = css(peak > frame.memory_limit ? colors.wrong : colors.ink);
    ctx.beginPath();
    ctx.moveTo(t.left, at);
    ctx.lineTo(right, at);
    ctx.stroke();
    ctx.setLineDash([]);
    const text = "limit", wide = ctx.measureText(text).width;
    ctx.fillStyle = css(colors.paper, 0.8);
    ctx.fillRect(right - wide - 6, at + 2, wide + 6, 14);
    ctx.fillStyle = css(colors.faint);
    ctx.fillText(text, right - wide - 3, at + 9);
  }
  const now = t.x(card.cursor);
  if (now >= t.left - 1 && now <= right + 1) {
    ctx.fillStyle = css(colors.ink);
    ctx.fillRect(Math.round(now) - 1, base - MEMORY_HIGH, 2, MEMORY_HIGH);
  }
}
