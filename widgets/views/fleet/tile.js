// One replica: a tile with queue, running, cache and words, or a cell of a heat grid.

import { css, mix } from "../../canvas/colors.js";
import { fit } from "../../canvas/text.js";
import { worded } from "../../canvas/numbers.js";

const EDGE = 14; // pixels of the cache's level

export function drawTile(ctx, card, i, { x, y, w, h }, lit) {
  const { frame, colors } = card, dead = frame.dead[i];
  ctx.fillStyle = css(colors.raised);
  ctx.fillRect(x, y, w, h);
  ctx.strokeStyle = css(dead ? colors.wrong : lit ? colors.ink : colors.line);
  ctx.lineWidth = lit || dead ? 2 : 1;
  ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  const inside = w - EDGE - 26;
  if (!frame.thinned) level(ctx, colors, x + w - EDGE - 8, y + 8, EDGE, h - 16, frame.used[i], frame.cached[i]);
  ctx.fillStyle = css(dead ? colors.wrong : colors.ink);
  ctx.fillText(fit(ctx, dead ? `${frame.names[i]}, dead` : frame.names[i], inside), x + 10, y + 18);
  beads(ctx, colors, x + 10, y + 26, inside, frame.waiting[i]);
  const share = Math.min(1, frame.running[i] / Math.max(1, frame.most));
  ctx.fillStyle = css(mix(colors.raised, colors.idle, 0.8));
  ctx.fillRect(x + 10, y + 42, inside, 10);
  ctx.fillStyle = css(colors.hues[0]);
  ctx.fillRect(x + 10, y + 42, inside * share, 10);
  const lines = [`${frame.running[i]} running, ${frame.waiting[i]} waiting, ${frame.served[i]} served`];
  if (!frame.thinned) {
    lines.push(`cache ${percent(frame.used[i])}, hits ${percent(frame.hits[i])}`);
    const watts = frame.powered ? `, ${worded(frame.watts[i], "W")}` : "";
    lines.push(`at work ${percent(Math.min(1, frame.busy[i]))}${watts}`);
  }
  lines.forEach((line, n) => {
    const at = y + 68 + 16 * n;
    if (at > y + h - 4) return;
    ctx.fillStyle = css(n ? colors.faint : colors.ink);
    ctx.fillText(fit(ctx, line, inside), x + 10, at);
  });
}

// A tile has no room for digits that say nothing: whole percents, and what is less than one says so.
function percent(share) {
  if (!Number.isFinite(share)) return "–";
  return share > 0 && share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`;
}

// Requests that wait, a dot each while there is room; then how many more.
function beads(ctx, colors, x, y, width, count) {
  const room = Math.max(1, Math.floor(width / 10) - 3), shown = Math.min(count, room);
  ctx.fillStyle = css(colors.hues[1]);
  for (let n = 0; n < shown; n++) {
    ctx.beginPath();
    ctx.arc(x + 4 + 10 * n, y + 5, 3.5, 0, 2 * Math.PI);
    ctx.fill();
  }
  if (count > shown) ctx.fillText(`+${count - shown}`, x + 10 * shown + 2, y + 9);
}

function level(ctx, colors, x, y, w, h, used, cached) {
  ctx.fillStyle = css(mix(colors.raised, colors.idle, 0.8));
  ctx.fillRect(x, y, w, h);
  const dark = h * Math.min(1, used), light = h * Math.min(1 - used, cached);
  ctx.fillStyle = css(mix(colors.raised, colors.hues[2], 0.45));
  ctx.fillRect(x, y + h - dark - light, w, light);
  ctx.fillStyle = css(colors.hues[2]);
  ctx.fillRect(x, y + h - dark, w, dark);
}

export function drawCell(ctx, card, i, { x, y, w, h }, lit) {
  const { frame, colors } = card;
  const share = Math.min(1, (frame.running[i] + frame.waiting[i]) / Math.max(1, frame.most));
  ctx.fillStyle = css(frame.dead[i] ? colors.wrong : mix(colors.idle, colors.hues[0], Math.sqrt(share)));
  ctx.fillRect(x, y, w, h);
  if (lit) {
    ctx.strokeStyle = css(colors.ink);
    ctx.lineWidth = 2;
    ctx.strokeRect(x, y, w, h);
  }
}
