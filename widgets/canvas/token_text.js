// Tokens of a frame: their texts, cut from one array of bytes, and how sure the model was of each.

import { css } from "./colors.js";

export const DECODER = new TextDecoder();

// What fits in one line: line breaks and tabs as signs, control characters as dots.
export function readable(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/\p{Cc}/gu, "·");
}

// Texts, and where each token of one frame stands in time: `at`, and its follower's in `next`.
export class Tokens {
  constructor(frame) {
    const count = frame.token_lane.length;
    this.frame = frame;
    this.texts = new Array(count);
    this.at = new Float64Array(count);
    this.next = new Float64Array(count).fill(Infinity);
    this.byLane = new Map();
    for (let i = 0; i < count; i++) {
      const list = this.byLane.get(frame.token_lane[i]);
      if (list) list.push(i); else this.byLane.set(frame.token_lane[i], [i]);
    }
    for (const list of this.byLane.values()) this.spread(list, frame.token_time);
  }

  // Tokens of one step came at one moment: they share the time until the lane's next one.
  spread(list, times) {
    let gap = 0;
    for (let first = 0, after; first < list.length; first = after) {
      const time = times[list[first]];
      for (after = first + 1; after < list.length && times[list[after]] === time; after++);
      if (after < list.length) gap = times[list[after]] - time;
      for (let k = first; k < after; k++) {
        this.at[list[k]] = time + gap * (k - first) / (after - first);
        if (k) this.next[list[k - 1]] = this.at[list[k]];
      }
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

// Whether a refused draft is the first of a branch of its tree.
export function beginsBranch(frame, i) {
  const branch = frame.token_branch?.[i] || 0;
  return branch > 0 && (i === 0 || frame.token_branch[i - 1] !== branch || frame.token_lane[i - 1] !== frame.token_lane[i]);
}
