// One panel of curves: its axes, bands, lines, limits, points and the names at their ends.

import { axisBelow, linesAcross, namesAtEnds } from "../../canvas/axes.js";
import { css, mix } from "../../canvas/colors.js";
import { Scale, axisLabel, ends, powersOfTwo } from "../../canvas/scales.js";
import { fit } from "../../canvas/text.js";

export const PANEL_HEAD = 24;
export const SECOND_LINE = 16; // more, where a panel's name and its y axis do not fit into one line
export const PANEL_FOOT = 38;
const CLOSE = 9;
const TURNS = 2; // of a bound: along one that goes up and down more often a name cannot stand
const LONG = 0.5; // of a panel's width: a bound's name beyond it would lie over curves

// The outline of a line's points: circle, square, triangle or diamond, as hues alone do not tell
// lines apart for every eye.
export function pointMark(ctx, x, y, hue) {
  const corners = [[], [[-2.4, -2.4], [2.4, -2.4], [2.4, 2.4], [-2.4, 2.4]],
    [[0, -3.4], [3.2, 2.4], [-3.2, 2.4]], [[0, -3.6], [3.2, 0], [0, 3.6], [-3.2, 0]]][Math.max(0, hue) % 4];
  ctx.beginPath();
  if (!corners.length) ctx.arc(x, y, 2.6, 0, 7);
  corners.forEach(([right, down], i) => ctx[i ? "lineTo" : "moveTo"](x + right, y + down));
  ctx.closePath();
}

export class CurvePanel {
  constructor(card, spec) {
    this.card = card;
    this.spec = spec;
    const { frame } = card;
    this.series = spec.series.map((series) => {
      const part = (name) => frame[name].subarray(series.first, series.first + series.count);
      return { ...series, xs: part("x"), ys: part("y"), lows: part("low"), highs: part("high") };
    });
    this.xLabel = axisLabel(spec.x);
    this.yLabel = axisLabel(spec.y);
  }

  // Whether the panel's name and what its y axis counts take two lines of that many pixels.
  needsTwoLines(ctx, width) {
    if (!this.yLabel.text || this.yLabel.text === this.spec.name) return false;
    ctx.font = `600 12px ${this.card.colors.font}`;
    const name = ctx.measureText(this.spec.name).width;
    ctx.font = `12px ${this.card.colors.font}`;
    return name + 8 + ctx.measureText(this.yLabel.text).width > width;
  }

  // Lay the panel out in a box. `wide`: pixels kept on the right for names, `head`: above the plot.
  place(ctx, x, y, width, height, wide, head) {
    const { spec } = this;
    const all = (names) => this.series.flatMap((s) => names.flatMap((name) => [...s[name]]));
    const xs = all(["xs"]), ys = all(["ys", "lows", "highs"]);
    const top = y + head, bottom = y + height - PANEL_FOOT;
    const [low, high] = ends(ys, spec.log_y, spec.zero);
    this.y = new Scale(low, high, spec.log_y, bottom, top, this.yLabel.unit);
    this.across = this.y.labels(Math.max(2, Math.floor((bottom - top) / 34)), false);
    const widest = Math.max(...this.across.map(([, text]) => ctx.measureText(text).width), 12);
    const left = x + Math.ceil(widest) + 8, right = x + width - wide - 6;
    this.x = new Scale(...ends(xs, spec.log_x, false), spec.log_x, left, right, this.xLabel.unit);
    const doubling = spec.log_x && powersOfTwo(xs);
    this.along = this.x.labels(Math.max(2, Math.floor((right - left) / 62)), doubling);
    Object.assign(this, { box: [x, y, width, height], left, right, top, bottom, doubling });
    const bounds = this.series.filter((s) => s.bound);
    this.listed = bounds.length > 1 || bounds.some((s) => turns(s.ys) > TURNS)
      || bounds.some((s) => ctx.measureText(s.base).width > LONG * (right - left)); // in the legend
    this.skipped = this.series.reduce((count, s) => count + [...s.xs].filter((v, i) =>
      !(this.x.takes(v) && this.y.takes(s.ys[i])) && Number.isFinite(s.ys[i])).length, 0);
  }

  color(series) {
    const { colors, chosen } = this.card;
    if (series.bound) return colors.faint;
    const own = colors.hues[series.hue % colors.hues.length];
    const others = chosen && series.base !== chosen && this.card.bases.has(chosen);
    return others ? mix(own, colors.paper, 0.66) : own;
  }

  // Points of a series that the axes can show, in order.
  points(series) {
    const found = [];
    for (let i = 0; i < series.count; i++) {
      const x = series.xs[i], y = series.ys[i];
      if (this.x.takes(x) && this.y.takes(y)) found.push([this.x.at(x), this.y.at(y), i]);
    }
    return found;
  }

  draw(ctx) {
    this.axes(ctx);
    for (const series of this.series) this.band(ctx, series);
    for (const series of this.series) this.line(ctx, series);
  }

  axes(ctx) {
    const { colors } = this.card, [x, y, width] = this.box;
    const second = this.needsTwoLines(ctx, width);
    ctx.font = `600 12px ${colors.font}`;
    ctx.fillStyle = css(colors.ink);
    const name = fit(ctx, this.spec.name, width);
    ctx.fillText(name, x, y + 8);
    const used = second ? 0 : ctx.measureText(name).width + 8;
    ctx.font = `12px ${colors.font}`;
    ctx.fillStyle = css(colors.faint);
    if (this.yLabel.text !== this.spec.name) {
      ctx.fillText(fit(ctx, this.yLabel.text, width - used), x + used, y + 8 + (second ? SECOND_LINE : 0));
    }
    linesAcross(ctx, colors, this, this.across);
    axisBelow(ctx, colors, this, this.along, this.left - 20, Infinity);
    ctx.textAlign = "center";
    ctx.fillText(fit(ctx, this.xLabel.text, this.right - this.left), (this.left + this.right) / 2, this.bottom + 30);
    ctx.textAlign = "left";
  }

  // The interval round a line: an area, or bars where there are few points.
  band(ctx, series) {
    const points = this.points(series).filter(([, , i]) =>
      this.y.takes(series.lows[i]) && this.y.takes(series.highs[i]));
    if (!points.length) return;
    const color = this.color(series);
    ctx.fillStyle = css(color, 0.16);
    ctx.beginPath();
    points.forEach(([x, , i], n) => ctx[n ? "lineTo" : "moveTo"](x, this.y.at(series.highs[i])));
    for (const [x, , i] of points.slice().reverse()) ctx.lineTo(x, this.y.at(series.lows[i]));
    ctx.fill();
    if (points.length > 20) return;
    ctx.strokeStyle = css(color, 0.7);
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const [x, , i] of points) {
      ctx.moveTo(x, this.y.at(series.lows[i]));
      ctx.lineTo(x, this.y.at(series.highs[i]));
    }
    ctx.stroke();
  }

  line(ctx, series) {
    const { colors, chosen } = this.card, points = this.points(series), color = this.color(series);
    if (!points.length) return;
    ctx.strokeStyle = css(color);
    const second = series.hue >= colors.hues.length; // where hues repeat: thin, with hollow points
    ctx.lineWidth = series.bound || second ? 1 : 1.8;
    if (series.base === chosen) ctx.lineWidth = 2.6;
    ctx.lineJoin = "round";
    if (series.modelled) ctx.setLineDash([6, 4]);
    if (series.bound && this.listed) ctx.setLineDash(series.dash);
    ctx.beginPath();
    if (series.bound && points.length === 1) {
      ctx.moveTo(this.left, points[0][1]);
      ctx.lineTo(this.right, points[0][1]);
    } else points.forEach(([x, y], n) => ctx[n ? "lineTo" : "moveTo"](x, y));
    ctx.stroke();
    ctx.setLineDash([]);
    const apart = (this.right - this.left) / points.length;
    if (series.bound || (points.length > 1 && apart < CLOSE)) return;
    ctx.fillStyle = css(series.modelled || second ? colors.paper : color);
    ctx.lineWidth = 1.5;
    for (const [x, y] of points) {
      pointMark(ctx, x, y, series.hue);
      ctx.fill();
      ctx.stroke();
    }
  }

  // Names beside the right ends of the lines, moved apart; a bound alone is named on the line.
  names(ctx, hasLegend) {
    const { colors, chosen } = this.card, named = [];
    this.taken = []; // where bounds are named: [middle, y, width]
    for (const series of this.series) {
      const points = this.points(series);
      if (!points.length) continue;
      if (series.bound) this.listed || this.nameBound(ctx, series, points);
      else if (!hasLegend) named.push([series, points[points.length - 1][1]]);
    }
    const shown = named.map(([series, y]) =>
      ({ text: series.name, y, color: this.color(series), bold: series.base === chosen }));
    namesAtEnds(ctx, colors, this, shown, this.box[0] + this.box[2] - this.right - 8);
  }

  // Along the line, above it, where it is farthest from the other lines.
  nameBound(ctx, series, points) {
    const { colors } = this.card, text = fit(ctx, series.base, (this.right - this.left) * 0.7);
    const width = ctx.measureText(text).width, level = points.length === 1;
    const others = this.series.filter((s) => s !== series).flatMap((s) => this.points(s));
    let best = null;
    for (let share = 0.02; share <= 0.98; share += 0.08) {
      const x = this.left + share * (this.right - this.left - width), middle = x + width / 2;
      const y = level ? points[0][1] : heightAt(points, middle);
      if (y === null) continue;
      const ahead = level ? y : heightAt(points, middle + 8) ?? heightAt(points, middle - 8) ?? y;
      const angle = level ? 0 : Math.atan2(ahead - y, heightAt(points, middle + 8) === null ? -8 : 8);
      const turn = Math.abs(angle) > Math.PI / 2 ? angle + Math.PI : angle;
      const high = y - Math.abs(Math.sin(turn)) * width / 2 - 16;
      const away = Math.min(...others.map(([px, py]) => Math.hypot((px - middle) / 2, py - y + 8)), 200);
      const crowded = this.taken.some(([at, up, wide]) =>
        Math.abs(at - middle) < (wide + width) / 2 + 6 && Math.abs(up - y) < 18);
      const room = away - (high < this.top ? 300 : 0) - (crowded ? 1000 : 0);
      if (!best || room > best.room) best = { room, middle, y, turn };
    }
    if (!best || best.room < -700) return; // one that lies on another is named by it
    this.taken.push([best.middle, best.y, width]);
    ctx.save();
    ctx.translate(best.middle, best.y);
    ctx.rotate(best.turn);
    ctx.textAlign = "center";
    ctx.fillStyle = css(colors.paper, 0.8);
    const side = best.room < -100 ? 9 : -8; // below the line where there is no room above
    ctx.fillRect(-width / 2 - 2, side - 7, width + 4, 13);
    ctx.fillStyle = css(this.color(series));
    ctx.fillText(text, 0, side);
    ctx.restore();
  }

  // The nearest point to a place: {series, index, x, y}, or null far from all.
  nearest(x, y) {
    let best = null;
    for (const series of this.series) {
      if (series.bound) continue;
      for (const [px, py, index] of this.points(series)) {
        const away = Math.abs(px - x) + Math.abs(py - y) * 0.6;
        if (!best || away < best.away) best = { away, series, index, x: px, y: py };
      }
    }
    return best;
  }
}

// How often a line goes the other way, up or down.
function turns(ys) {
  let count = 0;
  for (let i = 2; i < ys.length; i++) count += (ys[i] - ys[i - 1]) * (ys[i - 1] - ys[i - 2]) < 0;
  return count;
}

// The height of a line of points in order at `x`; null outside it.
function heightAt(points, x) {
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1], [bx, by] = points[i];
    if ((x >= ax && x <= bx) || (x <= ax && x >= bx)) {
      return bx === ax ? by : ay + (x - ax) / (bx - ax) * (by - ay);
    }
  }
  return null;
}
