// The roofline's marks: shape by phase, area by time, hollow where modelled; trails and the gap.

import { css } from "../../canvas/colors.js";
import { crowded } from "./plane.js";

// radius of the smallest mark, and of one that took all the time
const LEAST = 4.5;
const WIDEST = 26;
const STEPS = 5; // places a trail keeps

// Path of a mark whose area is that of a circle of this radius. 0 diamond, 1 circle, 2 triangle, 3 square.
function shapePath(ctx, phase, x, y, r) {
  ctx.beginPath();
  if (phase === 1) {
    ctx.arc(x, y, r, 0, 7);
    return;
  }
  const side = r * Math.sqrt(Math.PI);
  if (phase === 2) {
    const s = r * 2.69 / 2, h = s * Math.sqrt(3);
    ctx.moveTo(x, y - h * 2 / 3);
    ctx.lineTo(x + s, y + h / 3);
    ctx.lineTo(x - s, y + h / 3);
  } else if (phase === 3) {
    ctx.rect(x - side / 2, y - side / 2, side, side);
    return;
  } else {
    const d = side / Math.SQRT2;
    ctx.moveTo(x, y - d);
    ctx.lineTo(x + d, y);
    ctx.lineTo(x, y + d);
    ctx.lineTo(x - d, y);
  }
  ctx.closePath();
}

export function drawMark(ctx, colors, mark, x, y, r, lit = false) {
  const hue = colors.hues[mark.hue % colors.hues.length];
  shapePath(ctx, mark.phase, x, y, r);
  if (mark.modelled || mark.ghost) {
    ctx.fillStyle = css(hue, lit ? 0.3 : 0.1);
    ctx.fill();
    ctx.setLineDash(mark.modelled ? [4, 2.5] : []);
    ctx.strokeStyle = css(hue);
    ctx.lineWidth = lit ? 2.4 : 1.6;
  } else {
    ctx.fillStyle = css(hue, lit ? 1 : 0.82);
    ctx.fill();
    ctx.strokeStyle = css(lit ? colors.ink : colors.paper);
    ctx.lineWidth = lit ? 2 : 1;
  }
  ctx.stroke();
  ctx.setLineDash([]);
}

// Small dots: one call each.
export function drawCalls(ctx, colors, places) {
  ctx.fillStyle = css(colors.ink, 0.28);
  for (const [x, y] of places) ctx.fillRect(x - 1, y - 1, 2, 2);
}

export class Points {
  constructor() {
    this.run = null; // of the frame read last
    this.now = new Map(); // thread and its turn -> place in the run that is shown
    this.before = new Map(); // the same in the run before, of marks not seen again yet
    this.trails = new Map();
  }

  // Remember where the marks of another run stood: turning a knob leaves a trail.
  follow(frame) {
    if (!frame.marks.length) return;
    if (this.run !== frame.run) {
      [this.run, this.before, this.now] = [frame.run, this.now, new Map()];
    }
    for (const [key, mark] of named(frame.marks)) {
      const old = this.before.get(key);
      if (old) this.trails.set(key, [...(this.trails.get(key) || []), old].slice(-STEPS));
      this.before.delete(key);
      this.now.set(key, [mark.x, mark.y]);
    }
  }

  // Lay marks out on the plane, biggest first so that small ones stay in sight.
  place(plane, marks) {
    const total = marks.filter((m) => !m.ghost).reduce((sum, m) => sum + m.seconds, 0) || 1;
    this.placed = marks.map((mark) => ({
      mark,
      x: plane.x(mark.x),
      y: plane.y(mark.y),
      r: mark.ghost ? 6 : Math.max(LEAST, WIDEST * Math.sqrt(mark.seconds / total)),
    })).sort((a, b) => b.r - a.r);
  }

  draw(ctx, colors, plane, frame, lit, faded) {
    const { recent_x, recent_y } = frame;
    drawCalls(ctx, colors, Array.from(recent_x, (x, i) => [plane.x(x), plane.y(recent_y[i])]));
    this.drawTrails(ctx, colors, plane);
    for (const ghost of frame.ghosts || []) {
      ctx.globalAlpha = 0.75;
      drawMark(ctx, colors, { ...ghost, ghost: true }, plane.x(ghost.x), plane.y(ghost.y), 6);
    }
    for (const { mark, x, y, r } of this.placed) {
      ctx.globalAlpha = faded(mark) ? 0.25 : 1;
      drawMark(ctx, colors, mark, x, y, r, mark === lit);
    }
    ctx.globalAlpha = 1;
    this.names(ctx, colors, plane, lit);
  }

  drawTrails(ctx, colors, plane) {
    const now = named(this.placed.map((spot) => spot.mark));
    for (const [key, old] of this.trails) {
      const mark = now.get(key);
      if (!mark) continue;
      const path = [...old, [mark.x, mark.y]].map(([x, y]) => [plane.x(x), plane.y(y)]);
      ctx.strokeStyle = ctx.fillStyle = css(colors.hues[mark.hue % colors.hues.length], 0.6);
      ctx.lineWidth = 1.2;
      ctx.beginPath();
      path.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.stroke();
      for (const [x, y] of path.slice(0, -1)) {
        ctx.beginPath();
        ctx.arc(x, y, 2.5, 0, 7);
        ctx.fill();
      }
    }
  }

  // Names beside the marks that lose most, as far as there is room.
  names(ctx, colors, plane, lit) {
    const worth = [...this.placed].sort((a, b) => (b.mark === lit) - (a.mark === lit) || b.mark.lost - a.mark.lost);
    const taken = this.placed.map(({ x, y, r }) => ({ a: x - r, b: x + r, c: y - r, d: y + r }));
    for (const { mark, x, y, r } of worth.slice(0, 14)) {
      const width = ctx.measureText(mark.label).width;
      for (const [left, middle] of [[x + r + 4, y], [x - r - 4 - width, y], [x - width / 2, y + r + 9], [x - width / 2, y - r - 9]]) {
        const box = { a: left, b: left + width, c: middle - 7, d: middle + 7 };
        const outside = box.a < plane.left + 2 || box.b > plane.right || box.c < plane.top || box.d > plane.bottom;
        const name = { x: left, y: middle, angle: 0, width, height: 12 };
        if (outside || plane.taken.some((other) => crowded(name, other))) continue;
        if (taken.some((t) => box.a < t.b && box.b > t.a && box.c < t.d && box.d > t.c)) continue;
        taken.push(box);
        ctx.fillStyle = css(colors.paper, 0.7);
        ctx.fillRect(left - 1, middle - 7, width + 2, 14);
        ctx.fillStyle = css(colors.ink, mark === lit ? 1 : 0.85);
        ctx.fillText(mark.label, left, middle);
        break;
      }
    }
  }

  // The mark under the pointer, the smallest where several are; null where there is none.
  at(x, y) {
    let found = null;
    for (const spot of this.placed || []) {
      const away = Math.hypot(spot.x - x, spot.y - y);
      if (away <= Math.max(spot.r + 3, 9) && (!found || spot.r <= found.r)) found = spot;
    }
    return found ? found.mark : null;
  }
}

// Marks by what they are and their turn among their like, so that another shape or variant is found again.
function named(marks) {
  const found = new Map(), turns = new Map();
  for (const mark of [...marks].sort((a, b) => a.place - b.place)) {
    const key = `${mark.thread} ${mark.ghost} ${mark.part}`, turn = turns.get(key) || 0;
    turns.set(key, turn + 1);
    found.set(`${key} ${turn}`, mark);
  }
  return found;
}

// The gap to the binding roof, and the intensities of the other memory levels.
export function drawGap(ctx, colors, plane, mark) {
  const y = plane.y(mark.y);
  if (mark.levels.length) {
    ctx.strokeStyle = ctx.fillStyle = css(colors.faint);
    ctx.lineWidth = 1;
    ctx.setLineDash([1, 3]);
    const xs = [mark.x, ...mark.levels.map(([, x]) => x)].map((x) => plane.x(x));
    ctx.beginPath();
    ctx.moveTo(Math.min(...xs), y);
    ctx.lineTo(Math.max(...xs), y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = "center";
    for (const [name, x] of mark.levels) {
      ctx.fillRect(plane.x(x) - 0.5, y - 5, 1, 10);
      ctx.fillText(name, plane.x(x), y + 13);
    }
    ctx.textAlign = "left";
  }
  if (!(mark.limit > 0)) return;
  const x = Math.round(plane.x(mark.at)), to = plane.y(mark.limit);
  ctx.fillStyle = css(colors.ink);
  ctx.fillRect(x, Math.min(y, to), 1, Math.abs(to - y));
  ctx.fillRect(x - 4, Math.round(to), 9, 1);
}
