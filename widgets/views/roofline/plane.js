// The roofline's plane: log axes, the roofs of each device as named lines, and their ridge points.

import { css } from "../../canvas/colors.js";
import { clamp, three, worded } from "../../canvas/numbers.js";

export const EDGE = { left: 86, right: 14, top: 10, bottom: 40 };
const BESIDE = 15; // pixels between neighbouring names

export class Plane {
  constructor() {
    this.domain = null; // [lowest x, highest x, lowest y, highest y], grown within one run
    this.run = "";
    this.filled = false; // whether the domain is of marks or roofs
  }

  // Fit the axes to marks and roofs; within a run they only grow, so that points can be followed.
  fit(frame, marks, roofs, width, height) {
    const xs = [], ys = [];
    for (const mark of marks) {
      xs.push(mark.x, ...mark.levels?.map(([, x]) => x) || []);
      ys.push(mark.y);
    }
    for (const { x, y } of ridges(roofs.filter((roof) => roof.own))) {
      xs.push(x);
      ys.push(y);
    }
    ys.push(...roofs.filter((roof) => roof.kind === "compute").map((roof) => roof.value));
    const flats = roofs.filter((roof) => roof.own && roof.kind === "compute").map((roof) => roof.value);
    if (flats.length) ys.push(Math.max(...flats) / 300); // so that slanted roofs are seen
    const [a, b] = around(xs, 2.5), [c, d] = around(ys, 3.5);
    const old = this.run === frame.run && this.filled ? this.domain : null;
    Object.assign(this, { run: frame.run, filled: ys.length > 0 });
    this.domain = old
      ? [Math.min(a, old[0]), Math.max(b, old[1]), Math.min(c, old[2]), Math.max(d, old[3])]
      : [a, b, c, d];
    Object.assign(this, { width, height, right: width - EDGE.right, bottom: height - EDGE.bottom });
    this.left = EDGE.left;
    this.top = EDGE.top;
  }

  x(value) { return this.along(value, this.domain[0], this.domain[1], this.left, this.right); }
  y(value) { return this.along(value, this.domain[2], this.domain[3], this.bottom, this.top); }

  along(value, low, high, a, b) {
    return a + Math.log(value / low) / Math.log(high / low) * (b - a);
  }

  // `marks`: laid out already, so that names keep clear of them.
  draw(ctx, colors, roofs, marks) {
    this.grid(ctx, colors);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    ctx.clip();
    const names = [];
    for (const roof of roofs) this.roof(ctx, colors, roof, roofs, names);
    this.names(ctx, colors, names, marks);
    for (const ridge of ridges(roofs.filter((roof) => roof.own))) {
      ctx.beginPath();
      ctx.arc(this.x(ridge.x), this.y(ridge.y), 3, 0, 7);
      ctx.fillStyle = css(colors.paper);
      ctx.fill();
      ctx.lineWidth = 1;
      ctx.strokeStyle = css(colors.ink);
      ctx.stroke();
    }
    ctx.restore();
  }

  grid(ctx, colors) {
    const [lowX, highX, lowY, highY] = this.domain;
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "center";
    for (const value of decades(lowX, highX, (this.right - this.left) / 56)) {
      const x = Math.round(this.x(value));
      ctx.fillStyle = css(colors.line, 0.7);
      ctx.fillRect(x, this.top, 1, this.bottom - this.top);
      ctx.fillStyle = css(colors.faint);
      ctx.fillText(three(value), x, this.bottom + 11);
    }
    ctx.textAlign = "right";
    for (const value of decades(lowY, highY, (this.bottom - this.top) / 22)) {
      const y = Math.round(this.y(value));
      ctx.fillStyle = css(colors.line, 0.7);
      ctx.fillRect(this.left, y, this.right - this.left, 1);
      ctx.fillStyle = css(colors.faint);
      ctx.fillText(worded(value, "FLOP/s"), this.left - 7, y);
    }
    ctx.fillText("FLOP per byte of main memory", this.right, this.bottom + 28);
    ctx.textAlign = "left";
    const floor = Math.round(this.bottom);
    ctx.fillStyle = css(colors.faint, 0.5);
    ctx.fillRect(this.left, floor, this.right - this.left, 1);
  }

  // One roof from the edge of the plot to where another takes over.
  roof(ctx, colors, roof, roofs, names) {
    const own = roofs.filter((other) => other.device === roof.device);
    const best = (kind) => Math.max(0, ...own.filter((r) => r.kind === kind).map((r) => r.value));
    const [lowX, highX, lowY] = this.domain;
    const slanted = roof.kind === "bandwidth";
    const top = best("compute"), fastest = best("bandwidth");
    const from = slanted ? Math.max(lowX, lowY / roof.value) : Math.max(lowX, fastest ? roof.value / fastest : lowX);
    const to = slanted ? Math.min(highX, top ? top / roof.value : highX) : highX;
    if (!(to > from)) return;
    const at = (x) => [this.x(x), this.y(slanted ? roof.value * x : roof.value)];
    const [a, b] = [at(from), at(to)];
    ctx.beginPath();
    ctx.moveTo(...a);
    ctx.lineTo(...b);
    const solid = roof.grade === "measured";
    ctx.lineWidth = solid ? 1.8 : 1;
    ctx.setLineDash(roof.grade === "modelled" ? [5, 4] : []);
    ctx.strokeStyle = css(roof.own ? colors.ink : colors.faint, solid ? 0.85 : 0.75);
    ctx.stroke();
    ctx.setLineDash([]);
    names.push({ roof, slanted, a, b, text: this.words(roof) });
  }

  words(roof) {
    const unit = roof.kind === "bandwidth" ? "B/s" : "FLOP/s";
    return `${roof.own ? "" : `${roof.device} `}${roof.name}  ${worded(roof.value, unit)}`;
  }

  // Names stand on their lines; a second one at the same place goes under its line, a third is left out.
  names(ctx, colors, names, marks) {
    const taken = this.taken = [];
    for (const { roof, slanted, a, b, text } of names) {
      const angle = slanted ? Math.atan2(b[1] - a[1], b[0] - a[0]) : 0;
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]), width = ctx.measureText(text).width;
      if (slanted && length < width + 20) continue;
      const spots = slanted ? [[10, -8], [10, 9]] : [0, 0.35, 0.7].flatMap((part) => [-8, 9].map((aside) => [(length - width - 6) * (1 - part), aside]));
      for (const [along, aside] of spots) {
        const spot = {
          x: a[0] + along * Math.cos(angle) - aside * Math.sin(angle),
          y: a[1] + along * Math.sin(angle) + aside * Math.cos(angle),
          angle, width, height: 12,
        };
        if (taken.some((other) => crowded(spot, other)) || marks.some((mark) => covers(mark, spot))) continue;
        taken.push(spot);
        ctx.save();
        ctx.translate(spot.x, spot.y);
        ctx.rotate(angle);
        ctx.fillStyle = css(colors.paper, 0.8);
        ctx.fillRect(-2, -7, width + 4, 14);
        ctx.fillStyle = css(roof.own ? colors.ink : colors.faint);
        ctx.fillText(text, 0, 0);
        ctx.restore();
        break;
      }
    }
  }
}

// Whether two names would overlap; slanted ones run beside one another, so their distance counts.
export function crowded(a, b) {
  if (Math.abs(a.angle - b.angle) < 0.01) {
    const dx = b.x - a.x, dy = b.y - a.y;
    const along = dx * Math.cos(a.angle) + dy * Math.sin(a.angle);
    const aside = Math.abs(-dx * Math.sin(a.angle) + dy * Math.cos(a.angle));
    return aside < BESIDE && along < a.width + 8 && -along < b.width + 8;
  }
  const [flat, slant] = a.angle === 0 ? [a, b] : [b, a];
  for (let step = 0; step <= slant.width; step += 8) {
    const x = slant.x + step * Math.cos(slant.angle), y = slant.y + step * Math.sin(slant.angle);
    if (x > flat.x - 10 && x < flat.x + flat.width + 10 && Math.abs(y - flat.y) < BESIDE) return true;
  }
  return false;
}

// Whether a mark lies on a level name.
function covers({ x, y, r }, spot) {
  const dx = clamp(x, spot.x, spot.x + spot.width) - x;
  return spot.angle === 0 && Math.hypot(dx, spot.y - y) < r + 7;
}

// Where a bandwidth roof meets a compute roof of its device.
export function ridges(roofs) {
  const found = [];
  for (const slope of roofs.filter((roof) => roof.kind === "bandwidth")) {
    for (const flat of roofs.filter((roof) => roof.kind === "compute" && roof.device === slope.device)) {
      found.push({ x: flat.value / slope.value, y: flat.value, slope, flat });
    }
  }
  return found;
}

// Two ends with room on a log axis.
function around(values, room) {
  const good = values.filter((value) => Number.isFinite(value) && value > 0);
  if (!good.length) return [0.1, 1000];
  const low = Math.min(...good) / room, high = Math.max(...good) * room;
  return high / low < 30 ? [low / 3, high * 3] : [low, high];
}

function decades(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, most)));
  const found = [];
  for (let power = first; power <= last; power += every) found.push(Number(`1e${power}`));
  return found;
}
