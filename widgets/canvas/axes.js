// Parts of axes that views of lines share: lines across, the axis below, names beside the ends of
// lines, and the time cursor's label. A `plot` has left, right, top and bottom in pixels and the
// scales x and y (scales.js); labels are [value, text].

import { css, legible } from "./colors.js";
import { clamp } from "./numbers.js";
import { fit } from "./text.js";

export const NAME_LINE = 15; // pixels between neighbouring names
const CURSOR_LABEL = 18; // pixels of height

export function linesAcross(ctx, colors, plot, labels) {
  ctx.strokeStyle = css(colors.line);
  ctx.fillStyle = css(colors.faint);
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  ctx.beginPath();
  for (const [value, text] of labels) {
    const at = Math.round(plot.y.at(value)) + 0.5;
    ctx.moveTo(plot.left, at);
    ctx.lineTo(plot.right, at);
    ctx.fillText(text, plot.left - 6, at);
  }
  ctx.stroke();
  ctx.textAlign = "left";
}

// `from`, `to`: pixels that labels stay between; `taken`: [from, to] that they keep clear of.
export function axisBelow(ctx, colors, plot, labels, from, to, taken = null) {
  const y = plot.bottom;
  ctx.strokeStyle = css(colors.idle);
  ctx.fillStyle = css(colors.faint);
  ctx.lineWidth = 1;
  ctx.textAlign = "center";
  ctx.beginPath();
  ctx.moveTo(plot.left, y + 0.5);
  ctx.lineTo(plot.right, y + 0.5);
  let free = -Infinity;
  for (const [value, text] of labels) {
    const at = plot.x.at(value), half = ctx.measureText(text).width / 2;
    ctx.moveTo(Math.round(at) + 0.5, y);
    ctx.lineTo(Math.round(at) + 0.5, y + 4);
    const middle = clamp(at, from + half, Math.max(from + half, to - half));
    if (middle - half < free || (taken && middle + half > taken[0] && middle - half < taken[1])) continue;
    free = middle + half + 8;
    ctx.fillText(text, middle, y + 13);
  }
  ctx.stroke();
  ctx.textAlign = "left";
}

// `named`: {text, y, color, bold} each; moved apart, cut to `room` pixels right of the plot.
export function namesAtEnds(ctx, colors, plot, named, room) {
  const sorted = [...named].sort((a, b) => a.y - b.y);
  const heights = spreadOut(sorted.map(({ y }) => y), NAME_LINE, plot.top, plot.bottom);
  sorted.forEach(({ text, color, bold }, i) => {
    ctx.font = `${bold ? 600 : 400} 12px ${colors.font}`;
    ctx.fillStyle = css(legible(color, colors));
    ctx.fillText(fit(ctx, text, room), plot.right + 8, heights[i]);
  });
  ctx.font = `12px ${colors.font}`;
}

// Sorted heights moved as little as needed so that neighbours stand `apart`, within bounds.
export function spreadOut(heights, apart, low, high) {
  const placed = heights.map((y) => clamp(y, low, high));
  for (let i = 1; i < placed.length; i++) placed[i] = Math.max(placed[i], placed[i - 1] + apart);
  for (let i = placed.length - 1; i >= 0; i--) {
    placed[i] = Math.min(placed[i], high - (placed.length - 1 - i) * apart);
  }
  return placed;
}

// Where the label of a cursor at `x` stands: its middle and half its width.
export function cursorLabel(ctx, text, x, left, right) {
  const half = ctx.measureText(text).width / 2 + 6;
  return { text, half, at: clamp(x, left + half - 6, right - half + 6) };
}

// The time cursor: a line from `top` to an axis at `bottom`, its moment on a label below.
export function drawCursor(ctx, colors, label, x, top, bottom) {
  ctx.fillStyle = css(colors.ink);
  ctx.fillRect(Math.round(x) - 1, top, 2, bottom - top + 5);
  ctx.beginPath();
  ctx.roundRect(label.at - label.half, bottom + 5, 2 * label.half, CURSOR_LABEL, 4);
  ctx.fill();
  ctx.fillStyle = css(colors.paper);
  ctx.textAlign = "center";
  ctx.fillText(label.text, label.at, bottom + 14.5);
  ctx.textAlign = "left";
}
