// Bookmarks on a time axis: M marks the cursor's moment (again: takes the mark away), [ and ] go to
// the mark before and after. All views of a page have the same marks of a run.

import { css } from "./colors.js";

const FLAG = 5; // pixels of a flag's half, and within which a press means it
const HEARD = "workbench-bookmarks";

export class Bookmarks {
  constructor(timeline) {
    Object.assign(this, { timeline, times: [], run: "" });
    timeline.card.hearDocument(HEARD, ({ detail }) => {
      if (detail.run === this.timeline.frame?.run) this.take(detail);
    });
  }

  take({ run, times }) {
    Object.assign(this, { run, times });
    this.timeline.card.schedule();
  }

  get here() { return this.timeline.frame.run === this.run ? this.times : []; }

  // The mark under `x`, or nothing.
  near(x) {
    const { timeline: t } = this;
    return this.here.find((time) => Math.abs(t.x(t.scale.at(time)) - x) <= FLAG);
  }

  toggle() {
    const { timeline: t } = this, at = t.x(t.scale.at(t.card.cursor)), there = this.near(at);
    const times = there === undefined ? [...this.here, t.card.cursor].sort((a, b) => a - b)
      : this.here.filter((time) => time !== there);
    document.dispatchEvent(new CustomEvent(HEARD, { detail: { run: t.frame.run, times } }));
  }

  go(way) {
    const now = this.timeline.card.cursor, least = 1e-9 * this.timeline.end;
    const next = way > 0 ? this.here.find((time) => time > now + least)
      : this.here.filter((time) => time < now - least).pop();
    if (next !== undefined) this.timeline.card.set("seek", next);
  }

  draw(ctx) {
    const { timeline: t } = this, { colors } = t.card;
    for (const time of this.here) {
      const x = t.x(t.scale.at(time));
      if (x < t.left - 1 || x > t.width) continue;
      ctx.strokeStyle = ctx.fillStyle = css(colors.ink, 0.75);
      ctx.lineWidth = 1;
      ctx.setLineDash([2, 3]);
      ctx.beginPath();
      ctx.moveTo(x, t.top);
      ctx.lineTo(x, t.bottom);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(x - FLAG, t.bottom + FLAG + 2);
      ctx.lineTo(x + FLAG, t.bottom + FLAG + 2);
      ctx.lineTo(x, t.bottom);
      ctx.fill();
    }
  }
}
