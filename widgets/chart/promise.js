// Limits that a person puts on latencies: dragged along a plot or moved by keys, and told to the host, which
// says how many kept them.

import { css } from "../canvas/colors.js";
import { clamp } from "../canvas/numbers.js";
import { valueAt } from "./pointer.js";

const GRIP_NEAR = 7; // pixels from a limit at which it is taken hold of
const GRIP_HIGH = 18; // of the grip of one that is not set, at the right end of its plot
const MOVED = 1.05; // how far a key moves the limits

export class Promises {
  constructor(chart) {
    Object.assign(this, { chart, of: new Map(), held: null });
  }

  get plots() { return this.chart.plots.filter((plot) => plot.spec.promised); }
  get told() { return Object.fromEntries(this.of); }

  x(plot) {
    const value = this.of.get(plot.spec.promised);
    return value === undefined ? plot.right : clamp(plot.x.at(value), plot.left, plot.right);
  }

  // The plot whose limit, or its grip, is under the pointer.
  near(x, y) {
    return this.plots.find((plot) => {
      const foot = this.of.has(plot.spec.promised) ? plot.bottom : plot.top + GRIP_HIGH;
      return Math.abs(x - this.x(plot)) <= GRIP_NEAR && y >= plot.top - 4 && y <= foot;
    });
  }

  press(x, y) {
    this.held = this.near(x, y) || null;
    return Boolean(this.held);
  }

  // At the right end of the plot there is none.
  drag(x) {
    const { held } = this, at = clamp(x, held.left, held.right);
    if (at >= held.right - 1) this.of.delete(held.spec.promised);
    else this.of.set(held.spec.promised, Math.max(0, valueAt(held, at)));
    this.chart.card.schedule();
  }

  release() {
    this.held = null;
    this.chart.tell();
  }

  // L puts a limit at what nine in ten kept, or takes all away; comma and full stop move them.
  key(event) {
    const { plots, of } = this, factor = { ",": 1 / MOVED, ".": MOVED }[event.key];
    if (!plots.length || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key.toLowerCase() === "l") {
      const isSet = of.size > 0;
      of.clear();
      for (const { spec } of isSet ? [] : plots) {
        const most = spec.readings.find(({ name }) => name === "p90")?.x;
        if (most > 0) of.set(spec.promised, most);
      }
    } else if (factor && of.size) {
      for (const [name, value] of of) of.set(name, value * factor);
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    this.chart.card.schedule();
    this.chart.tell();
    return true;
  }

  draw(ctx) {
    const { colors } = this.chart.card;
    for (const plot of this.plots) {
      const x = Math.round(this.x(plot)), isSet = this.of.has(plot.spec.promised);
      ctx.fillStyle = css(isSet ? colors.ink : colors.faint);
      if (isSet) ctx.fillRect(x - 0.5, plot.top, 1.5, plot.bottom - plot.top);
      ctx.beginPath();
      ctx.moveTo(x - 6, plot.top - 2);
      ctx.lineTo(x + 6, plot.top - 2);
      ctx.lineTo(x, plot.top + 8);
      ctx.fill();
      if (isSet) continue;
      ctx.font = `12px ${colors.font}`;
      ctx.textAlign = "right";
      ctx.fillText("limit", plot.right, plot.top - 11); // over the plot: within it lie the curve's last points
      ctx.textAlign = "left";
    }
  }
}
