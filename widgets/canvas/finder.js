// Finding pieces and lanes by name on a time axis: / opens the field, Enter goes on, Escape closes.

import { css } from "./colors.js";
import { make } from "../page/nodes.js";
import { clamp, grouped } from "./numbers.js";

const OUTLINES = 400; // outlines drawn
const NARROW = 24; // pixels: a piece narrower than that is zoomed to

export class Finder {
  // `pieces(frame)`: {names, lane, kind, start, stop, text(i) (further words of a piece, or none)}.
  constructor(timeline, pieces) {
    Object.assign(this, { timeline, pieces, found: [], place: -1, seen: null, asked: "" });
    const row = make("div", "pw-switch", timeline.card.tools);
    this.button = make("button", "", row, "Find");
    this.button.type = "button";
    this.button.title = "Find spans and lanes by name (/)";
    this.button.onclick = () => this.open(this.field.hidden);
    this.field = make("input", "pw-find", timeline.card.tools);
    this.field.type = "search";
    this.field.setAttribute("aria-label", "Find spans and lanes by name");
    this.field.oninput = () => this.look(true);
    this.field.onkeydown = (event) => this.key(event);
    this.said = make("span", "pw-found", timeline.card.tools);
    this.said.setAttribute("role", "status");
    this.open(false);
  }

  open(isOpen) {
    this.field.hidden = !isOpen;
    this.button.setAttribute("aria-pressed", String(isOpen));
    if (isOpen) this.field.focus();
    else this.field.value = "";
    this.look(true);
  }

  key(event) {
    event.stopPropagation(); // letters are no commands here
    if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    this.open(false);
    this.timeline.surface.canvas.focus();
  }

  // What says the text, else what has all its words, by time; `isNew`: another question than before.
  look(isNew) {
    const t = this.timeline, { frame } = t, asked = this.field.value.toLowerCase().trim(), words = asked.split(/\s+/);
    if (!frame) return;
    const here = this.found[this.place];
    this.seen = frame;
    this.found = asked ? this.matching(frame, [asked]) : [];
    if (!this.found.length && words.length > 1) this.found = this.matching(frame, words);
    this.found.sort((a, b) => a.start - b.start || a.lane - b.lane);
    this.place = isNew || !here ? -1 : this.found.findIndex((each) => each.start === here.start && each.lane === here.lane);
    this.tell(asked);
    t.card.schedule();
  }

  matching(frame, words) {
    const { names, lane, kind, start, stop, text } = this.pieces(frame), found = [], t = this.timeline;
    const lanes = frame.names.map((name) => name.toLowerCase());
    const has = (said) => words.every((word) => said.includes(word));
    lanes.forEach((name, i) => {
      if (has(name)) found.push({ lane: i + frame.lane0, start: 0, stop: t.end, isLane: true });
    });
    const kinds = names.map((name) => name.toLowerCase());
    for (let i = 0; i < lane.length; i++) {
      if (lane[i] < 0) continue;
      const own = `${kinds[kind[i]]} ${text ? text(i).toLowerCase() : ""}`;
      if (has(own) || (words.some((word) => own.includes(word)) && has(`${own} ${lanes[lane[i] - frame.lane0] || ""}`))) {
        found.push({ lane: lane[i], start: start[i], stop: stop[i] });
      }
    }
    return found;
  }

  tell(isAsked) {
    const count = grouped(this.found.length);
    this.said.textContent = !isAsked ? "" : this.place < 0 ? `${count} here` : `${grouped(this.place + 1)} of ${count}`;
  }

  // The next one (or the one before) comes into sight, wide enough to be seen.
  go(way) {
    const { found, timeline: t } = this;
    if (!found.length) return;
    this.place = (this.place + way + found.length) % found.length;
    if (this.place < 0) this.place = found.length - 1;
    const { lane, start, stop, isLane } = found[this.place], wide = t.x(stop) - t.x(start);
    if (lane < t.first || lane >= t.first + t.fits) {
      t.held = true;
      t.first = clamp(lane - t.fits / 2, 0, t.most);
    }
    if (!isLane && (start < t.from || stop > t.to || wide < NARROW)) {
      const span = Math.min(t.to - t.from, Math.max((stop - start) * 12, t.end * 1e-5));
      if (span < t.end) t.pan((start + stop - span) / 2, span);
    }
    this.tell(true);
    t.card.schedule();
  }

  draw(ctx) {
    const { timeline: t } = this, { colors } = t.card;
    if (this.field.hidden || !this.field.value) return;
    if (t.frame !== this.seen) this.look(false);
    let drawn = 0;
    this.found.forEach(({ lane, start, stop, isLane }, i) => {
      const left = Math.max(t.left, t.x(start)), right = Math.min(t.width, t.x(stop)), isHere = i === this.place;
      if (right < t.left || left > t.width || lane + 1 < t.first || (drawn > OUTLINES && !isHere)) return;
      if (isLane && !isHere) return;
      drawn += 1;
      ctx.strokeStyle = css(colors.ink, isHere ? 1 : 0.55);
      ctx.lineWidth = isHere ? 2.5 : 1;
      ctx.strokeRect(left - 1, t.y(lane) + 1, Math.max(3, right - left + 1), Math.max(3, t.pitch - 2));
    });
  }
}
