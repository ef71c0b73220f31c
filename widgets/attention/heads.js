// The grid of heads: a small picture of each, layers downwards; a press or the arrow keys choose.

import { css } from "../canvas/colors.js";
import { clamp, three } from "../canvas/numbers.js";
import { shadesOf } from "./tiles.js";

const LABEL = 26; // pixels for the numbers of layers and heads
const GAP = 3;

export class Heads {
  constructor(card, choose) {
    Object.assign(this, { card, choose, layer: 0, head: 0, pictures: [] });
  }

  // The head with the strongest sink first would tell least: it begins with the one that spreads.
  take(frame) {
    this.pictures = [];
    this.frame = frame;
    this.layer = clamp(this.layer, 0, frame.layers - 1);
    this.head = clamp(this.head, 0, frame.heads - 1);
  }

  picture(i) {
    if (this.colors !== this.card.colors) {
      this.colors = this.card.colors;
      this.shades = shadesOf(this.colors);
      this.pictures = [];
    }
    if (this.pictures[i]) return this.pictures[i];
    const { side, thumbs } = this.frame, canvas = document.createElement("canvas");
    canvas.width = canvas.height = side;
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(side, side);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < side * side; at++) pixels[at] = this.shades[thumbs[i * side * side + at]];
    ctx.putImageData(image, 0, 0);
    return (this.pictures[i] = canvas);
  }

  draw(ctx, width, height) {
    const { frame, card } = this, { layers, heads } = frame, { colors } = card;
    const size = Math.min(72, (width - LABEL) / heads - GAP, (height - LABEL - 18) / layers - GAP);
    this.size = Math.max(6, Math.floor(size));
    const pitch = this.size + GAP;
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "left";
    ctx.fillText("layers ↓ heads →", 0, 8);
    ctx.textAlign = "center";
    for (let head = 0; head < heads; head++) {
      if (pitch < 18 && head % 4) continue;
      ctx.fillText(String(head), LABEL + head * pitch + this.size / 2, 26);
    }
    ctx.imageSmoothingEnabled = false;
    for (let layer = 0; layer < layers; layer++) {
      const y = LABEL + 10 + layer * pitch;
      ctx.textAlign = "right";
      ctx.fillStyle = css(colors.faint);
      if (pitch >= 13 || layer % 4 === 0) ctx.fillText(String(layer), LABEL - 6, y + this.size / 2);
      for (let head = 0; head < heads; head++) {
        const x = LABEL + head * pitch, isChosen = layer === this.layer && head === this.head;
        ctx.drawImage(this.picture(layer * heads + head), x, y, this.size, this.size);
        ctx.strokeStyle = css(isChosen ? colors.ink : colors.line);
        ctx.lineWidth = isChosen ? 3 : 1;
        ctx.strokeRect(x - (isChosen ? 1 : 0), y - (isChosen ? 1 : 0), this.size + (isChosen ? 2 : 0), this.size + (isChosen ? 2 : 0));
      }
    }
  }

  at(x, y) {
    const pitch = this.size + GAP;
    const head = Math.floor((x - LABEL) / pitch), layer = Math.floor((y - LABEL - 10) / pitch);
    const { layers, heads } = this.frame;
    return head >= 0 && head < heads && layer >= 0 && layer < layers ? { layer, head } : null;
  }

  words({ layer, head }) {
    const { frame } = this, i = layer * frame.heads + head, at = frame.sink_at[i];
    return [`layer ${layer}, head ${head}`,
      `token ${at} (“${frame.texts[at]}”) gets most: ${three(frame.sink_share[i] * 100)} % of its attention`];
  }

  turn(layer, head) {
    this.layer = clamp(layer, 0, this.frame.layers - 1);
    this.head = clamp(head, 0, this.frame.heads - 1);
    this.choose();
  }

  key(event) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!by || !this.frame) return;
    event.preventDefault();
    this.turn(this.layer + by[0], this.head + by[1]);
  }
}
