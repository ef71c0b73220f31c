// Axes of curves: from values to pixels, and which round values carry a label.

import { grouped, ticks, timeTicks, worded } from "./numbers.js";

const UNITS = ["s", "B", "B/s", "FLOP", "FLOP/s", "%", "W", "J"];

// "time (s)" as its words and its unit; the unit moves to the numbers where they can carry it.
export function axisLabel(text) {
  const found = /^(.*?)\s*\(([^()]*)\)$/.exec(text || "");
  if (!found || !UNITS.includes(found[2])) return { text: text || "", unit: "" };
  return { text: found[1], unit: found[2] };
}

// Pixels from `a` to `b` for values from `low` to `high`.
export class Scale {
  constructor(low, high, log, a, b, unit) {
    Object.assign(this, { low, high, log, a, b, unit });
    this.from = log ? Math.log(low) : low;
    this.span = (log ? Math.log(high) : high) - this.from || 1;
  }

  at(value) {
    const place = this.log ? Math.log(value) : value;
    return this.a + (place - this.from) / this.span * (this.b - this.a);
  }

  takes(value) { return Number.isFinite(value) && !(this.log && value <= 0); }

  // [value, text] of at most `count` labels; `doubling`: values are powers of two.
  labels(count, doubling) {
    const values = this.log ? this.rounds(count, doubling) : this.even(count);
    return values.map((value) => [value, this.text(value, doubling)]);
  }

  text(value, doubling) {
    if (doubling && this.log && !this.unit) return grouped(value);
    return worded(value, this.unit, this.log ? Math.abs(value) : Math.max(Math.abs(this.low), Math.abs(this.high)));
  }

  even(count) {
    return (this.unit === "s" ? timeTicks : ticks)(this.low, this.high, count);
  }

  // Times of a clock: decades of a second below a minute, then what minutes and hours are counted in.
  times(within) {
    const found = [];
    for (let power = Math.floor(Math.log10(this.low)); power < 2; power++) found.push(10 ** power);
    for (const minutes of [1, 2, 5, 10, 30, 60, 120, 300, 720, 1440]) found.push(60 * minutes);
    for (let days = 10; days * 86400 <= this.high; days *= 10) found.push(days * 86400);
    return found.filter(within);
  }

  rounds(count, isDoubling) {
    const doubling = isDoubling || this.unit === "B", base = doubling ? 2 : 10;
    const within = (v) => v >= this.low * 0.9999 && v <= this.high * 1.0001;
    if (this.unit === "s" && this.high >= 120) return thinned(this.times(within), count);
    const first = Math.floor(Math.log(this.low) / Math.log(base)), found = [];
    for (let power = first; base ** power <= this.high * 1.0001; power++) found.push(base ** power);
    const whole = found.filter(within);
    if (whole.length > count) return thinned(whole, count);
    if (doubling) return whole;
    for (const parts of [[1, 2, 5], [1, 3]]) {
      const finer = found.flatMap((v) => parts.map((part) => part * v)).filter(within);
      if (finer.length <= count && finer.length > whole.length) return finer;
    }
    return whole.length > 1 ? whole : ticks(this.low, this.high, count);
  }
}

function thinned(values, count) {
  const every = Math.max(1, Math.ceil(values.length / count));
  return values.filter((_, i) => i % every === 0);
}

// The ends of an axis that shows all of `values`.
export function ends(values, log, zero) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  if (log) {
    const room = Math.max((high / low) ** 0.06, 1.08);
    return [low / room, high * room];
  }
  const start = zero && low >= 0 ? 0 : low, room = (high - start || Math.abs(high) || 1) * 0.06;
  return [start === 0 && zero ? 0 : start - room, high + room];
}

export function powersOfTwo(values) {
  return values.length > 0 && values.every((v) => v > 0 && Number.isInteger(Math.log2(v)));
}
