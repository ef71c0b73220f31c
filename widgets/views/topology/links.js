// Links as rows: how much of each one's bandwidth is used over the time up to the cursor.

import { css, mix } from "../../canvas/colors.js";
import { clamp, seconds, three, worded } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";

// pixels for a link's name, and for its figures
const LINK_NAMES = 190;
const LINK_TOLD = 170;

export class Uses {
  place(frame, width, height) {
    const many = Math.max(1, frame.links.length);
    this.top = 26;
    this.row = clamp((height - this.top - 18) / many, 9, 30);
    this.shown = Math.min(frame.links.length, Math.floor((height - this.top - 18) / this.row));
    this.left = LINK_NAMES;
    this.right = Math.max(this.left + 60, width - LINK_TOLD);
  }

  draw(ctx, card, lit) {
    const { frame, colors } = card, { top, row, left, right } = this;
    const pieces = frame.link_pieces, wide = right - left, bar = row - Math.min(4, row * 0.25);
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "left";
    ctx.fillText("link", 8, 12);
    ctx.fillText("share of its bandwidth in use, over time", left, 12);
    ctx.fillText("mean · carried", right + 10, 12);
    for (let i = 0; i < this.shown; i++) {
      const y = top + i * row, base = y + bar;
      ctx.fillStyle = css(mix(colors.paper, colors.idle, 0.6));
      ctx.fillRect(left, y, wide, bar);
      ctx.fillStyle = css(mix(colors.hues[0], colors.paper, lit >= 0 && lit !== i ? 0.6 : 0.1));
      ctx.beginPath();
      ctx.moveTo(left, base);
      for (let piece = 0; piece < pieces; piece++) {
        const share = Math.min(1, frame.link_use[i * pieces + piece]);
        ctx.lineTo(left + wide * piece / pieces, base - bar * share);
        ctx.lineTo(left + wide * (piece + 1) / pieces, base - bar * share);
      }
      ctx.lineTo(right, base);
      ctx.fill();
      if (row < 12 && i % Math.ceil(13 / row)) continue;
      ctx.fillStyle = css(lit === i ? colors.ink : mix(colors.ink, colors.faint, 0.3));
      ctx.fillText(fit(ctx, frame.links[i], LINK_NAMES - 16), 8, y + bar / 2);
      const mean = frame.link_bytes[i] / frame.link_bandwidth[i] / Math.max(frame.now, 1e-12);
      ctx.fillText(`${three(100 * mean)}% · ${worded(frame.link_bytes[i], "B")}`, right + 10, y + bar / 2);
    }
    ctx.fillStyle = css(colors.faint);
    const under = top + this.shown * row + 8;
    ctx.fillText("0", left, under);
    ctx.textAlign = "right";
    ctx.fillText(seconds(frame.now), right, under);
    ctx.textAlign = "left";
  }

  words(frame, i) {
    return [
      frame.links[i],
      `${worded(frame.link_bytes[i], "B")} carried of ${worded(frame.link_bandwidth[i], "B/s")}`,
      `at most ${three(100 * frame.link_peak[i])}% in use`,
    ];
  }

  linkAt(frame, x, y) {
    const i = Math.floor((y - this.top) / this.row);
    return i >= 0 && i < this.shown && x < this.right + LINK_TOLD ? i : -1;
  }

  endAt() { return -1; }
}
