// Colours of a schedule: a hue for each name of work, of every other microbatch its second tone, grey
// for idle; kinds beyond the hues repeat one with a second mark.
// A profiler's trace has hundreds of names: there each category of work has a hue.

import { css, mix, pixel } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { hatch, textured } from "../../canvas/texture.js";
import { causesSeen } from "./launches.js";
import { MESSAGE_SIDES } from "./messages.js";

// Of one hue: microbatches that follow one another differ, whatever eyes look. More tones would be
// less than ten apart.
const TONES = 2;
const FAINT = 0.78; // how much of the paper there is in what is not lit
const USUAL = {
  F: 0, forward: 0, B: 1, backward: 1, W: 2, "weight gradient": 2, collective: 3, all_reduce: 3,
  send: 4, receive: 5, recv: 5, optimiser: 6, optimizer: 6,
};

const CATEGORY = { compute: 0, communication: 3, memory: 2 }; // what the host does is grey
const GREY = -2;
// A hue for each kind: the usual one where its name is known, else the next that is free; -1 idle.
// From `count` on they come again, with a mark.
function kindHues(frame, count) {
  if (frame.groups.length) {
    return frame.kinds.map((_, i) => (frame.idle[i] ? -1 : CATEGORY[frame.groups[frame.kind_group[i]]] ?? GREY));
  }
  const taken = new Set(frame.move_row ? MESSAGE_SIDES.map(([, hue]) => hue) : []), hues = frame.kinds.map((kind, i) => {
    const hue = frame.idle[i] ? -1 : USUAL[kind] ?? null;
    taken.add(hue);
    return hue;
  });
  let next = 0;
  return hues.map((hue) => {
    if (hue !== null) return hue;
    while (taken.has(next) && next < count) next += 1;
    return next++;
  });
}

export class ScheduleLooks {
  constructor(frame, colors) {
    Object.assign(this, { frame, colors });
    const count = colors.hues.length, hues = kindHues(frame, count);
    this.hues = hues.map((hue) => (hue < 0 ? hue : hue % count));
    this.marks = hues.map((hue) => (hue < count ? 0 : 1)); // textures, by kind
    const idle = mix(colors.paper, colors.idle, 0.45);
    this.grey = mix(colors.paper, colors.ink, 0.38);
    this.solid = this.hues.flatMap((hue) => [colors.hues, colors.tones].map((of) =>
      hue === GREY ? this.grey : hue < 0 ? idle : of[hue]));
    this.idle = css(idle);
    this.dim = this.solid.map((color) => mix(color, colors.paper, FAINT));
    this.fills = this.solid.map((color) => css(color));
    this.faint = this.dim.map((color) => css(color));
  }

  tone(task) {
    if (task < 0) return 0;
    const number = this.frame.task_number[task];
    return (number < 0 ? task : number) % TONES;
  }

  // What shares are counted by, a kind or a category: the one that a kind belongs to.
  static group(frame, kind) { return frame.groups.length ? frame.kind_group[kind] : kind; }
  static groupNames(frame) { return frame.groups.length ? frame.groups : frame.kinds; }

  // What the spans of a place are filled with.
  fill(ctx, place, isLit) {
    const mark = this.marks[Math.floor(place / TONES)];
    if (!mark) return (isLit ? this.fills : this.faint)[place];
    return textured(ctx, (isLit ? this.solid : this.dim)[place], mark, this.colors.paper);
  }

  // The same of such a group, of whatever task; and as pixels of a picture, plain and of its mark.
  ofGroup(ctx, group, isLit) { return this.fill(ctx, this.groupPlace(group), isLit); }

  pixelsOf(group, isLit) {
    const place = this.groupPlace(group), color = (isLit ? this.solid : this.dim)[place];
    return [color, this.marks[Math.floor(place / TONES)] ? mix(color, this.colors.paper, 0.5) : color].map(pixel);
  }

  groupPlace(group) {
    const kind = this.frame.groups.length ? this.frame.kind_group.indexOf(group) : group;
    return kind * TONES;
  }

  place(i) { return this.frame.span_kind[i] * TONES + this.tone(this.frame.span_task[i]); }
}

// The names of work, as many as fit; then idle, and modelled where measured spans stand beside it.
export function scheduleLegend(card, looks, legend) {
  const { frame, colors } = card;
  const kinds = frame.groups.length
    ? frame.groups.map((group) => [group, CATEGORY[group] ?? GREY])
    : frame.kinds.map((kind, i) => [kind, looks.hues[i], looks.marks[i]]).filter(([, hue]) => hue >= 0);
  const waits = causesSeen(frame);
  const key = JSON.stringify([colors, kinds, waits, frame.memory_kinds, frame.layers, Boolean(frame.move_row)]);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const item = (text, paint) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(text);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    paint(ctx);
  };
  const box = (color, mark = 0) => (ctx) => {
    ctx.fillStyle = textured(ctx, color, mark, colors.paper);
    ctx.fillRect(0, 2, 14, 10);
  };
  for (const [kind, hue, mark] of kinds.slice(0, 12)) {
    item(kind, box(hue === GREY ? looks.grey : colors.hues[hue], mark));
  }
  if (kinds.length > 12) make("span", "", legend, `and ${kinds.length - 12} more`);
  if (!frame.turns) item("idle", box(mix(colors.paper, colors.idle, 0.45)));
  for (const [words, hue] of waits) {
    item(words, (ctx) => {
      box(mix(colors.paper, colors.idle, 0.45))(ctx);
      ctx.fillStyle = css(colors.hues[hue]);
      ctx.fillRect(0, 5, 14, 4);
    });
  }
  for (const [words, hue] of frame.move_row ? MESSAGE_SIDES : []) {
    item(`message ${words}`, (ctx) => {
      ctx.fillStyle = css(colors.hues[hue]);
      ctx.fillRect(0, 5, 14, 4);
    });
  }
  if (frame.layers > 1) {
    item("modelled", (ctx) => {
      box(colors.faint)(ctx);
      hatch(ctx, 0, 2, 14, 10, colors.paper);
    });
  }
}
