// Who sends (rows) to whom (columns): a cell for each pair, darker for more bytes.

import { css, mix } from "../../canvas/colors.js";
import { fit } from "../../canvas/text.js";

const LABELS = 120; // pixels for the names of rows

export class Pairs {
  place(frame, width, height) {
    const many = frame.names.length;
    this.top = 64;
    this.cell = Math.max(0.5, Math.min(44, (width - LABELS - 24) / many, (height - this.top - 12) / many));
    this.left = Math.max(LABELS, (width - many * this.cell) / 2);
    this.every = Math.ceil(15 / this.cell); // names that have room
    this.most = frame.bytes.length ? frame.bytes[0] : 1;
    this.of = new Map(Array.from(frame.source, (s, i) => [s * many + frame.target[i], i]));
  }

  draw(ctx, card, lit) {
    const { frame, colors } = card, many = frame.names.length, { cell, left, top } = this;
    const gap = cell > 6 ? 1 : 0;
    for (let row = 0; row < many; row++) {
      for (let column = 0; column < many; column++) {
        const i = this.of.get(row * many + column);
        const share = i === undefined ? 0 : Math.sqrt(frame.bytes[i] / this.most);
        ctx.fillStyle = css(i === undefined ? mix(colors.paper, colors.idle, row === column ? 1 : 0.45)
          : mix(colors.idle, colors.hues[0], 0.15 + 0.85 * share));
        ctx.fillRect(left + column * cell, top + row * cell, cell - gap, cell - gap);
        if (i === lit && lit >= 0) {
          ctx.strokeStyle = css(colors.ink);
          ctx.lineWidth = 2;
          ctx.strokeRect(left + column * cell, top + row * cell, cell - gap, cell - gap);
        }
      }
    }
    ctx.fillStyle = css(colors.ink);
    frame.names.forEach((name, i) => {
      if (i % this.every) return;
      ctx.textAlign = "right";
      ctx.fillText(fit(ctx, name, LABELS - 12), left - 8, top + (i + 0.5) * cell);
      ctx.save();
      ctx.textAlign = "left";
      ctx.translate(left + (i + 0.5) * cell, top - 6);
      ctx.rotate(-Math.PI / 4);
      ctx.fillText(fit(ctx, name, 72), 0, 0);
      ctx.restore();
    });
    ctx.textAlign = "left";
    ctx.fillStyle = css(colors.faint);
    ctx.fillText("sends ↓   receives →", left - LABELS + 4, 12);
  }

  linkAt(frame, x, y) {
    const many = frame.names.length;
    const column = Math.floor((x - this.left) / this.cell), row = Math.floor((y - this.top) / this.cell);
    if (column < 0 || row < 0 || column >= many || row >= many) return -1;
    return this.of.get(row * many + column) ?? -1;
  }

  endAt() { return -1; }
}
