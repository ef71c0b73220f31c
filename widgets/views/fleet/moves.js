// What was sent last: a line from tile to tile for a cache, a mark on the tile for a new request.

import { css } from "../../canvas/colors.js";

const SHARE = 0.02; // of the time so far: how long a move stays in sight

export function drawMoves(ctx, card, { cells }) {
  const { frame, colors } = card, since = Math.max(1e-9, SHARE * frame.now);
  for (let i = 0; i < frame.sent_at.length; i++) {
    const age = (frame.now - frame.sent_at[i]) / since, to = cells[frame.sent_to[i]];
    if (age > 1 || !to) continue;
    const from = cells[frame.sent_from[i]], color = css(colors.hues[3], 1 - 0.8 * age);
    const x = to.x + to.w / 2, y = to.y;
    ctx.fillStyle = ctx.strokeStyle = color;
    if (from) {
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(from.x + from.w / 2, from.y + from.h);
      ctx.lineTo(x, y);
      ctx.stroke();
    }
    ctx.beginPath();
    ctx.arc(x, y, 4, 0, 2 * Math.PI);
    ctx.fill();
  }
}
