// Colours of a schedule: a hue for each name of work, of every other microbatch its second tone, grey
// for idle.
// A profiler's trace has hundreds of names: there each category of work has a hue.

import { css, mix, pixel } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { hatch } from "../../canvas/texture.js";
import { causesSeen } from "./launches.js";

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
function kindHues(frame, count) {
  if (frame.groups.length) {
    return frame.kinds.map((_, i) => (frame.idle[i] ? -1 : CATEGORY[frame.groups[frame.kind_group[i]]] ?? GREY));
  }
  const taken = new Set(), hues = frame.kinds.map((kind, i) => {
    const hue = frame.idle[i] ? -1 : USUAL[kind] ?? null;
    taken.add(hue);
    return hue;
  });
  let next = 0;
  return hues.map((hue) => {
    if (hue !== null) return hue;
    while (taken.has(next) && next < count) next += 1;
    return next++ % count;
  });
}

export class ScheduleLooks {
  constructor(frame, colors) {
    Object.assign(this, { frame, colors });
    this.hues = kindHues(frame, colors.hues.length);
    const idle = mix(colors.paper, colors.idle, 0.45);
    this.grey = mix(colors.paper, colors.ink, 0.38);
    this.solid = this.hues.flatMap((hue) => [colors.hues, colors.tones].map((of) =>
      hue === GREY ? this.grey : hue < 0 ? idle : of[hue]));
    this.idle = css(idle);
    this.fills = this.solid.map((color) => css(color));
    this.faint = this.solid.map((color) => css(mix(color, colors.paper, FAINT)));
  }

  tone(task) {
    if (task < 0) return 0;
    const number = this.frame.task_number[task];
    return (number < 0 ? task : number) % TONES;
  }

  // What shares are counted by, a kind or a category: the one that a kind belongs to.
  static group(frame, kind) { return frame.groups.length ? frame.kind_group[kind] : kind; }
  static groupNames(frame) { return frame.groups.length ? frame.groups : frame.kinds; }

  // The colour of such a group, of whatever task: as text, and as one pixel of a picture.
  ofGroup(group, isLit) { return (isLit ? this.fills : this.faint)[this.groupPlace(group)]; }

  pixelOf(group, isLit) {
    const color = this.solid[this.groupPlace(group)];
    return pixel(isLit ? color : mix(color, this.colors.paper, FAINT));
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
    : frame.kinds.map((kind, i) => [kind, looks.hues[i]]).filter(([, hue]) => hue >= 0);
  const waits = causesSeen(frame);
  const key = JSON.stringify([colors, kinds, waits, frame.memory_kinds, frame.layers]);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const item = (text, paint) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    span.append(text);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    paint(ctx);
  };
  const box = (color) => (ctx) => {
    ctx.fillStyle = css(color);
    ctx.fillRect(0, 2, 14, 10);
  };
  for (const [kind, hue] of kinds.slice(0, 12)) item(kind, box(hue === GREY ? looks.grey : colors.hues[hue]));
  if (kinds.length > 12) make("span", "", legend, `and ${kinds.length - 12} more`);
  if (!frame.turns) item("idle", box(mix(colors.paper, colors.idle, 0.45)));
  for (const [words, hue] of waits) {
    item(words, (ctx) => {
      box(mix(colors.paper, colors.idle, 0.45))(ctx);
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
