// The swatch beside an owner's name: its hue and, where hues repeat, a mark in the middle. Only
// there and on the pages of a cache: a lane is told by its name, and marks on it would be a flicker.

import { css } from "./colors.js";

export const SWATCH = 10; // pixels

// Centred on `y`. `texture`: 0 none, 1 a dot, 2 two dots, 3 a ring.
export function ownerSwatch(ctx, color, texture, paper, x, y) {
  ctx.fillStyle = css(color);
  ctx.fillRect(x, y - SWATCH / 2, SWATCH, SWATCH);
  if (!texture) return;
  ctx.fillStyle = ctx.strokeStyle = css(paper);
  ctx.lineWidth = 1.5;
  const middle = x + SWATCH / 2;
  for (const off of texture === 2 ? [-2.5, 2.5] : [0]) {
    ctx.beginPath();
    ctx.arc(middle + off, y + off, texture === 3 ? 2.6 : texture === 2 ? 1.6 : 2.2, 0, 7);
    if (texture === 3) ctx.stroke(); else ctx.fill();
  }
}
