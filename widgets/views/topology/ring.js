// Ends on a ring, links as arrows that bend to the right, as wide as their share of the bytes.

import { css, mix } from "../../canvas/colors.js";
import { fit } from "../../canvas/text.js";

// pixels; pieces of an arrow when the pointer looks for it
const WIDEST = 14;
const NODE = 9;
const STEPS = 24;

export class Ring {
  place(frame, width, height) {
    const many = frame.names.length, reach = Math.max(40, Math.min(width / 2 - 130, height / 2 - 34));
    this.middle = [width / 2, height / 2];
    this.at = frame.names.map((_, i) => {
      const angle = -Math.PI / 2 + 2 * Math.PI * i / many;
      return [this.middle[0] + reach * Math.cos(angle), this.middle[1] + reach * Math.sin(angle)];
    });
    if (many === 1) this.at = [[...this.middle]];
    this.most = frame.bytes.length ? frame.bytes[0] : 1;
  }

  // Start, bend and end of link i, short of the ends' own discs.
  curve(frame, i) {
    const [ax, ay] = this.at[frame.source[i]], [bx, by] = this.at[frame.target[i]];
    const long = Math.hypot(bx - ax, by - ay) || 1, ux = (bx - ax) / long, uy = (by - ay) / long;
    const bend = Math.min(60, 14 + long * 0.12), gap = NODE + 4;
    const from = [ax + ux * gap - uy * 4, ay + uy * gap + ux * 4];
    const to = [bx - ux * gap - uy * 4, by - uy * gap + ux * 4];
    return [from, [(ax + bx) / 2 - uy * bend, (ay + by) / 2 + ux * bend], to];
  }

  wide(frame, i) { return Math.max(1, WIDEST * frame.bytes[i] / this.most); }

  draw(ctx, card, lit) {
    const { frame, colors, chosen } = card;
    for (let i = frame.source.length - 1; i >= 0; i--) {
      const names = [frame.names[frame.source[i]], frame.names[frame.target[i]]];
      const dim = chosen && !names.includes(chosen) || lit >= 0 && lit !== i;
      const color = colors.hues[frame.hue[frame.source[i]]];
      this.arrow(ctx, this.curve(frame, i), this.wide(frame, i), css(mix(color, colors.paper, dim ? 0.85 : 0.2)));
    }
    frame.names.forEach((name, i) => this.end(ctx, card, name, i));
  }

  arrow(ctx, [from, bend, tip], wide, color) {
    const size = 6 + wide * 0.8, long = Math.hypot(tip[0] - bend[0], tip[1] - bend[1]) || 1;
    const ux = (tip[0] - bend[0]) / long, uy = (tip[1] - bend[1]) / long;
    const to = [tip[0] - size * ux, tip[1] - size * uy]; // the line ends where its head begins
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = wide;
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.quadraticCurveTo(...bend, ...to);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(...tip);
    for (const side of [1, -1]) {
      ctx.lineTo(to[0] - side * size * 0.7 * uy, to[1] + side * size * 0.7 * ux);
    }
    ctx.fill();
  }

  end(ctx, card, name, i) {
    const { frame, colors, chosen } = card, [x, y] = this.at[i];
    const faded = chosen && chosen !== name;
    ctx.fillStyle = css(colors.hues[frame.hue[i]], faded ? 0.35 : 1);
    ctx.beginPath();
    ctx.arc(x, y, NODE, 0, 2 * Math.PI);
    ctx.fill();
    if (frame.names.length > 40) return;
    const out = x >= this.middle[0] - 1 ? 1 : -1, above = Math.abs(x - this.middle[0]) < 2;
    ctx.fillStyle = css(faded ? colors.faint : colors.ink);
    ctx.textAlign = above ? "center" : out > 0 ? "left" : "right";
    const dy = above ? (y < this.middle[1] ? -NODE - 10 : NODE + 11) : 0;
    ctx.fillText(fit(ctx, name, 110), x + (above ? 0 : out * (NODE + 6)), y + dy);
    ctx.textAlign = "left";
  }

  endAt(x, y) { return this.at.findIndex(([ax, ay]) => Math.hypot(x - ax, y - ay) <= NODE + 3); }

  // The link under the pointer, the nearest within reach; -1 for none.
  linkAt(frame, x, y) {
    let best = -1, least = Infinity;
    for (let i = 0; i < Math.min(frame.source.length, 800); i++) {
      const [a, b, c] = this.curve(frame, i), room = this.wide(frame, i) / 2 + 4;
      for (let step = 0; step <= STEPS; step++) {
        const t = step / STEPS, u = 1 - t;
        const px = u * u * a[0] + 2 * u * t * b[0] + t * t * c[0];
        const py = u * u * a[1] + 2 * u * t * b[1] + t * t * c[1];
        const far = Math.hypot(px - x, py - y) - room;
        if (far < 4 && far < least) [best, least] = [i, far];
      }
    }
    return best;
  }
}
