// A range of time and lanes that a person drags over, and what lies in it as a table by kind.

import { css } from "./colors.js";
import { copied } from "../page/clipboard.js";
import { make } from "../page/nodes.js";
import { clamp, clockTime, grouped, seconds, worded } from "./numbers.js";

const HEADS = ["", "count", "in the range", "share", "mean", "p99"];

// `pieces`: {names, lane, kind, start, stop, count (of pieces put together, or none), gap (what to
// call time in which a lane has no piece, or ""), missing (how many in sight could not be sent)}; `range`: {from, to (seconds), first, last (lanes)}.
// Gives [name, count, seconds in the range, share of the lanes' time, mean, p99 of whole lengths];
// NaN where pieces put together hide how long each was.
function tally(pieces, range) {
  const { lane, kind, start, stop, count } = pieces, kinds = new Map(), lanes = new Map();
  for (let i = 0; i < lane.length; i++) {
    if (lane[i] < range.first || lane[i] > range.last || stop[i] < range.from || start[i] > range.to) continue;
    if (stop[i] === range.from && start[i] < stop[i]) continue; // only touches it
    const from = Math.max(start[i], range.from), to = Math.min(stop[i], range.to);
    const each = kinds.get(kind[i]) || { count: 0, inside: 0, whole: 0, lengths: [], isPacked: false };
    each.count += count ? count[i] : 1;
    each.inside += to - from;
    each.whole += stop[i] - start[i];
    each.lengths.push(stop[i] - start[i]);
    each.isPacked ||= Boolean(count) && count[i] > 1;
    kinds.set(kind[i], each);
    if (!lanes.has(lane[i])) lanes.set(lane[i], []);
    lanes.get(lane[i]).push([from, to]);
  }
  const all = (range.to - range.from) * (range.last - range.first + 1);
  const rows = [...kinds].map(([of, each]) => [pieces.names[of], each.count, each.inside, each.inside / all,
    each.whole / each.count, each.isPacked ? NaN : quantile(each.lengths, 0.99)]);
  rows.sort((a, b) => b[2] - a[2]);
  if (pieces.gap) {
    let busy = 0;
    for (const parts of lanes.values()) busy += covered(parts);
    const idle = Math.max(0, all - busy);
    if (idle > 1e-9 * all) rows.push([pieces.gap, NaN, idle, idle / all, NaN, NaN]);
  }
  return rows;
}

// The value that a share of the lengths does not exceed: the nearest rank.
function quantile(lengths, share) {
  const sorted = Float64Array.from(lengths).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

// How long intervals are together, where they overlap once.
function covered(parts) {
  parts.sort((a, b) => a[0] - b[0]);
  let total = 0, reach = -Infinity;
  for (const [from, to] of parts) {
    total += Math.max(0, to - Math.max(from, reach));
    reach = Math.max(reach, to);
  }
  return total;
}

export class TimeRange {
  // `pieces(frame)`: what may be counted.
  constructor(timeline, pieces) {
    Object.assign(this, { timeline, pieces, range: null, isOn: false });
    const row = make("div", "pw-switch", timeline.card.tools);
    this.button = make("button", "", row, "Select");
    this.button.type = "button";
    this.button.title = "Drag over lanes to count what lies there; Shift + drag does it at any time";
    this.button.onclick = () => this.turn(!this.isOn);
    this.panel = make("div", "pw-range", timeline.card.body);
    this.panel.setAttribute("role", "region");
    this.panel.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      timeline.surface.canvas.focus();
      this.clear();
    };
    this.panel.setAttribute("aria-label", "What lies in the chosen range");
    this.turn(false);
    this.clear();
  }

  turn(isOn) {
    this.isOn = isOn;
    this.button.setAttribute("aria-pressed", String(isOn));
    this.timeline.surface?.canvas.classList.toggle("pw-selects", isOn);
  }

  isAsked(event) { return this.isOn || event.shiftKey; }

  // Between two spots of the lanes; times and lanes beyond them count as their ends.
  set(a, b) {
    this.ends = null;
    const t = this.timeline, lane = (y) => clamp(Math.floor((y - t.top) / t.pitch + t.first), 0, t.frame.lanes - 1);
    const times = [a.x, b.x].map((x) => clamp(t.time(x), 0, t.end)), lanes = [lane(a.y), lane(b.y)];
    this.range = {
      from: Math.min(...times), to: Math.max(...times), first: Math.min(...lanes), last: Math.max(...lanes),
    };
    this.show();
    this.timeline.card.schedule();
  }

  // By keys: from the time cursor on, over all lanes; each press moves its end by a share of what is
  // in sight.
  extend(share) {
    const t = this.timeline, now = t.scale.at(t.card.cursor);
    this.ends = this.range ? this.ends || [this.range.from, this.range.to] : [now, now];
    this.ends[1] = clamp(this.ends[1] + share * (t.to - t.from), 0, t.end);
    this.range = { from: Math.min(...this.ends), to: Math.max(...this.ends), first: 0, last: t.frame.lanes - 1 };
    this.show();
    t.card.schedule();
  }

  clear() {
    this.ends = null;
    this.range = null;
    this.panel.hidden = true;
    this.timeline.card.schedule();
  }

  show() {
    if (!this.range || !(this.range.to > this.range.from)) return;
    this.counted = this.timeline.frame;
    const { range, panel } = this, pieces = this.pieces(this.counted), rows = tally(pieces, range);
    const lanes = range.last - range.first + 1;
    const head = make("div", "pw-range-head");
    make("b", "", head, `${clockTime(range.from, range.to)} to ${clockTime(range.to)}`);
    make("span", "", head, `${seconds(range.to - range.from)} of ${lanes > 1 ? `${grouped(lanes)} lanes` : this.laneName(range.first)}`);
    const button = (text, label, act) => {
      const made = make("button", "", head, text);
      made.type = "button";
      made.setAttribute("aria-label", label);
      made.onclick = () => act(made);
    };
    button("Zoom", "Show this range alone", () => { this.timeline.zoomTo([range.from, range.to]); this.clear(); });
    button("Copy", "Copy the table as CSV", async (made) => {
      made.textContent = await copied(asCsv(rows)) ? "Copied" : "Copying is not allowed here";
    });
    button("×", "Close the table", () => { this.timeline.surface.canvas.focus(); this.clear(); });
    const table = make("table");
    const titles = make("tr", "", make("thead", "", table));
    for (const text of HEADS) make("th", "", titles, text).scope = "col";
    const body = make("tbody", "", table);
    for (const row of rows) {
      const line = make("tr", "", body);
      make("th", "", line, row[0]).scope = "row";
      for (const text of texts(row)) make("td", "", line, text);
    }
    if (!rows.length) make("td", "", make("tr", "", body), "nothing here").colSpan = HEADS.length;
    const { missing } = pieces;
    panel.replaceChildren(head, table, ...(missing ? [make("div", "", null, `without ${grouped(missing)} too many to send: zoom in`)] : []));
    panel.hidden = false;
  }

  laneName(lane) {
    const t = this.timeline;
    return t.known(lane) ? t.frame.names[t.at(lane)] : `lane ${lane}`;
  }

  draw(ctx) {
    const { timeline: t, range } = this;
    if (!range) return;
    // A live run goes on under it; of what is out of sight not all pieces may be here.
    if (t.frame !== this.counted && !t.drag && range.from >= t.from && range.to <= t.to) this.show();
    const { colors } = t.card, left = t.x(range.from), right = t.x(range.to);
    const top = Math.max(t.top, t.y(range.first)), bottom = Math.min(t.bottom, t.y(range.last + 1));
    if (bottom <= top) return;
    ctx.fillStyle = css(colors.ink, 0.09);
    ctx.fillRect(left, top, right - left, bottom - top);
    ctx.strokeStyle = css(colors.ink, 0.7);
    ctx.lineWidth = 1;
    ctx.strokeRect(Math.round(left) + 0.5, Math.round(top) + 0.5, Math.round(right - left), Math.round(bottom - top) - 1);
  }
}

const told = (value, text) => (Number.isFinite(value) ? text(value) : "–");

function texts([, count, inside, share, mean, p99]) {
  return [told(count, grouped), told(inside, seconds), told(share, (value) => worded(value, "%")),
    told(mean, seconds), told(p99, seconds)];
}

function asCsv(rows) {
  const cell = (value) => (typeof value === "string" ? `"${value.replaceAll('"', '""')}"` : told(value, String));
  const heads = ["kind", "count", "seconds_in_range", "share_of_lane_time", "mean_seconds", "p99_seconds"];
  return [heads.join(","), ...rows.map((row) => row.map(cell).join(","))].join("\n");
}
