// Tokens of a frame: their texts, cut from one array of bytes, and how sure the model was of each.

import { css } from "./colors.js";

export const DECODER = new TextDecoder();

// What fits in one line: line breaks and tabs as signs, control characters as dots.
export function readable(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/\p{Cc}/gu, "·");
}

// Texts, and the time of each token's follower in its lane, of one frame.
export class Tokens {
  constructor(frame) {
    this.frame = frame;
    this.texts = new Array(frame.token_lane.length);
    this.next = new Float64Array(frame.token_lane.length).fill(Infinity);
    this.byLane = new Map();
    for (let i = 0; i < this.next.length; i++) {
      const lane = frame.token_lane[i];
      let list = this.byLane.get(lane);
      if (!list) this.byLane.set(lane, list = []);
      if (list.length) this.next[list[list.length - 1]] = frame.token_time[i];
      list.push(i);
    }
  }

  text(i) {
    const { frame } = this;
    return this.texts[i] ??= DECODER.decode(
      frame.text.subarray(i ? frame.token_stop[i - 1] : 0, frame.token_stop[i]));
  }

  sign(i) { return readable(this.text(i)); }
}

// How strongly a token is coloured: its probability.
export function surety(logprob) {
  return 0.16 + 0.84 * Math.exp(Math.min(0, logprob)) ** 0.7;
}

export function outlineToken(ctx, colors, x, y, width, high) {
  ctx.strokeStyle = css(colors.ink);
  ctx.lineWidth = 2;
  ctx.strokeRect(x - 1.5, y - high / 2 - 1.5, width + 3, high + 3);
}
