// A minimap above a long time axis: how busy the whole run is, and which part of it is in sight.

import { css, mix } from "./colors.js";
import { clamp } from "./numbers.js";

const MINI = 22; // pixels with the gap below
const HIGH = 16;
const GRIP = 5; // pixels beside an edge of the part in sight that move that edge alone
const LEAST = 4; // pixels: a click shows what lies around it instead

export class Minimap {
  // `shares(frame)`: how busy each of equal parts of the run is, 0 to 1, or null for no minimap;
  // `right`: pixels left free at the right.
  constructor(timeline, shares, right) {
    Object.assign(this, { timeline, shares, right, drag: null });
  }

  get high() { return this.shares(this.timeline.frame) ? MINI : 0; }
  get room() { return this.timeline.width - this.timeline.left - this.right; }
  x(time) { return this.timeline.left + clamp(time / this.timeline.end, 0, 1) * this.room; }
  time(x) { return clamp((x - this.timeline.left) / this.room, 0, 1) * this.timeline.end; }
  holds(x, y) { return y < this.high && x >= this.timeline.left - GRIP; }

  draw(ctx) {
    const { timeline: t } = this, shares = this.shares(t.frame), { colors } = t.card;
    if (!shares) return;
    ctx.fillStyle = css(mix(colors.paper, colors.idle, 0.25));
    ctx.fillRect(t.left, 0, this.room, HIGH);
    ctx.fillStyle = css(mix(colors.paper, colors.ink, 0.42));
    const reach = t.frame.now / t.end * this.room / shares.length;
    for (let i = 0; i < shares.length; i++) {
      const high = shares[i] * HIGH;
      ctx.fillRect(t.left + i * reach, HIGH - high, reach + 0.4, high);
    }
    if (t.part) {
      const left = this.x(t.from), right = Math.max(left + 2, this.x(t.to));
      ctx.fillStyle = css(colors.paper, 0.62);
      ctx.fillRect(t.left, 0, left - t.left, HIGH);
      ctx.fillRect(right, 0, t.left + this.room - right, HIGH);
      ctx.strokeStyle = css(colors.ink);
      ctx.lineWidth = 1.5;
      ctx.strokeRect(left, 0.75, right - left, HIGH - 1.5);
    }
    const now = this.x(t.card.cursor);
    ctx.fillStyle = css(colors.ink);
    ctx.fillRect(Math.round(now) - 1, 0, 2, HIGH);
  }

  // Where the part in sight was taken: at an edge, within, or beside it (then a new one is drawn).
  press(x) {
    const { timeline: t } = this, left = this.x(t.from), right = this.x(t.to);
    const near = (edge) => t.part && Math.abs(x - edge) <= GRIP;
    const by = near(left) ? "left" : near(right) ? "right" : t.part && x > left && x < right ? "all" : "new";
    this.drag = { by, x, from: t.from, to: t.to, start: this.time(x) };
  }

  move(x) {
    const { timeline: t, drag } = this, time = this.time(x), least = t.end * 1e-6;
    if (drag.by === "all") t.pan(drag.from + time - drag.start, drag.to - drag.from);
    else if (drag.by === "left") t.zoomTo([Math.min(time, drag.to - least), drag.to]);
    else if (drag.by === "right") t.zoomTo([drag.from, Math.max(time, drag.from + least)]);
    else if (Math.abs(x - drag.x) > LEAST) t.zoomTo([Math.min(time, drag.start), Math.max(time, drag.start)]);
    t.card.schedule();
  }

  release(x) {
    const { timeline: t, drag } = this;
    this.drag = null;
    if (drag.by !== "new" || Math.abs(x - drag.x) > LEAST) return;
    const span = t.part ? t.to - t.from : t.end / 8;
    t.pan(this.time(x) - span / 2, span);
    t.card.schedule();
  }
}
