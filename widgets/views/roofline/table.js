// The roofline's table: marks by the time they lose, linked with the plot.

import { css } from "../../canvas/colors.js";
import { clamp, seconds } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { drawMark } from "./points.js";

export const ROW = 24;
export const TOP = 28;
const HEADS = [["of limit", 54], ["time", 52], ["lost", 62]];

export class LossTable {
  constructor() {
    this.first = 0; // rows scrolled away
    this.rows = [];
  }

  draw(ctx, card, marks, width, height, lit) {
    const { colors } = card;
    this.rows = [...marks].filter((mark) => !mark.ghost).sort((a, b) => b.lost - a.lost || b.seconds - a.seconds)
      .concat(marks.filter((mark) => mark.ghost));
    const tall = this.rows.length * ROW > height - TOP; // then the last line says how many are hidden
    const fits = Math.max(1, Math.floor((height - TOP - (tall ? 18 : 0)) / ROW));
    this.first = clamp(this.first, 0, Math.max(0, this.rows.length - fits));
    const rights = columns(width);
    ctx.fillStyle = css(colors.faint);
    const known = this.rows.some((mark) => mark.least);
    ctx.fillText(`${this.rows.length} by time${known ? " lost" : ""}`, 24, 12);
    ctx.textAlign = "right";
    HEADS.forEach(([name], i) => ctx.fillText(name, rights[i], 12));
    ctx.fillStyle = css(colors.line);
    ctx.fillRect(0, TOP - 4, width, 1);
    const total = this.rows.reduce((sum, mark) => sum + (mark.ghost ? 0 : mark.seconds), 0) || 1;
    this.rows.slice(this.first, this.first + fits).forEach((mark, i) => {
      this.row(ctx, card, mark, TOP + i * ROW, width, rights, total, mark === lit);
    });
    ctx.textAlign = "left";
    const hidden = this.rows.length - fits - this.first;
    if (hidden > 0) {
      ctx.fillStyle = css(colors.paper, 0.92);
      ctx.fillRect(0, height - 18, width, 18);
      ctx.fillStyle = css(colors.faint);
      ctx.fillText(`${hidden} more below: scroll`, 24, height - 8);
    }
  }

  row(ctx, { colors }, mark, y, width, rights, total, isLit) {
    if (isLit) {
      ctx.fillStyle = css(colors.raised);
      ctx.fillRect(0, y, width, ROW);
      ctx.fillStyle = css(colors.ink);
      ctx.fillRect(0, y, 2, ROW);
    }
    const middle = y + ROW / 2;
    drawMark(ctx, colors, mark, 12, middle, 5);
    ctx.fillStyle = css(mark.ghost ? colors.faint : colors.ink);
    ctx.textAlign = "left";
    const room = rights[0] - HEADS[0][1] - 24;
    const whole = [mark.title, mark.detail].filter(Boolean).join(" ");
    const short = mark.shape && ctx.measureText(whole).width > room; // what tells it from the others stays
    ctx.fillText(fit(ctx, short ? mark.label : whole, room), 24, middle);
    ctx.textAlign = "right";
    ctx.fillText(mark.share === null ? "–" : percent(mark.share), rights[0], middle);
    const time = mark.ghost ? seconds(mark.seconds) : percent(mark.seconds / total);
    ctx.fillText(time, rights[1], middle);
    ctx.fillText(mark.ghost ? "" : mark.least ? seconds(mark.lost) : "–", rights[2], middle);
    ctx.fillStyle = css(colors.line);
    ctx.fillRect(0, y + ROW - 1, width, 1);
  }

  at(y) {
    const place = Math.floor((y - TOP) / ROW);
    return place >= 0 ? this.rows[this.first + place] || null : null;
  }
}

function percent(share) {
  if (share > 1.05) return "> 100 %"; // a roof that is none
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;
}

// Right edges of the columns.
function columns(width) {
  let right = width - 6;
  return [...HEADS].reverse().map(([, wide]) => {
    const here = right;
    right -= wide;
    return here;
  }).reverse();
}
