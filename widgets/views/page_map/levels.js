// Used, cached, free and host pages over time, stacked; and the decisions as sentences.

import { css, mix } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { ago, clamp, clockTime, countBelow, grouped, seconds, timeTicks } from "../../canvas/numbers.js";
import { hatchBand } from "../../canvas/texture.js";

const LEGEND_WIDTH = 104;
const LEVEL_AXIS = 18;

export class Levels {
  constructor(card) {
    this.card = card;
    this.run = "";
    this.from = this.to = 0; // what is in sight
    this.last = 0; // the latest moment seen of this run: scrubbing back keeps the axis
  }

  tones() {
    const { paper, ink, idle } = this.card.colors;
    return { used: mix(paper, ink, 0.62), cached: mix(paper, ink, 0.26), free: mix(paper, idle, 0.3), host: ink };
  }

  draw(ctx, width, height) {
    const { frame, colors, cursor } = this.card, tones = this.tones();
    const { reach } = this.card;
    if (frame.run !== this.run || reach < this.reach) [this.run, this.last] = [frame.run, 0];
    this.reach = reach;
    this.last = Math.max(this.last, reach, cursor, frame.time[frame.time.length - 1]);
    const right = width - LEGEND_WIDTH, bottom = height - LEVEL_AXIS, top = 4;
    const pages = Math.max(1, frame.state.length);
    this.right = right;
    const recent = this.card.recent(this.last); // of a live run
    [this.from, this.to] = recent || [0, this.last];
    const x = (t) => (this.to > this.from ? clamp((t - this.from) / (this.to - this.from), 0, 1) : 0) * right;
    const y = (n) => bottom - (n / pages) * (bottom - top);
    const end = Math.max(cursor, frame.time[frame.time.length - 1]); // nothing happened since
    ctx.fillStyle = css(tones.free);
    ctx.fillRect(0, top, x(end), bottom - top);
    if (frame.modelled) hatchBand(ctx, colors, 0, top, x(end), bottom - top);
    const both = frame.used.map((n, i) => n + frame.cached[i]);
    for (const [values, tone] of [[both, tones.cached], [frame.used, tones.used]]) {
      ctx.beginPath();
      ctx.moveTo(0, bottom);
      for (let i = 0; i < values.length; i++) {
        ctx.lineTo(x(frame.time[i]), y(i ? values[i - 1] : values[0]));
        ctx.lineTo(x(frame.time[i]), y(values[i]));
      }
      ctx.lineTo(x(end), y(values[values.length - 1]));
      ctx.lineTo(x(end), bottom);
      ctx.fillStyle = css(tone);
      ctx.fill();
    }
    this.host(ctx, x, y, end);
    this.axis(ctx, right, bottom, top);
    this.legend(ctx, right + 14, tones);
  }

  host(ctx, x, y, end) {
    const { frame, colors } = this.card;
    if (!frame.host.some((n) => n)) return;
    ctx.beginPath();
    frame.host.forEach((n, i) => {
      ctx.lineTo(x(frame.time[i]), y(i ? frame.host[i - 1] : n));
      ctx.lineTo(x(frame.time[i]), y(n));
    });
    ctx.lineTo(x(end), y(frame.host[frame.host.length - 1]));
    ctx.lineWidth = 3.5;
    ctx.strokeStyle = css(colors.paper);
    ctx.stroke();
    ctx.lineWidth = 1.5;
    ctx.setLineDash([5, 3]);
    ctx.strokeStyle = css(colors.ink);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  axis(ctx, right, bottom, top) {
    const { colors, cursor } = this.card;
    ctx.fillStyle = css(colors.faint);
    ctx.strokeStyle = css(colors.line);
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, bottom + 0.5);
    ctx.lineTo(right, bottom + 0.5);
    ctx.stroke();
    const late = this.from > 0 ? this.last : 0, x = (t) => (this.to > this.from ? (t - this.from) / (this.to - this.from) : 0) * right;
    const found = timeTicks(this.from - late, this.to - late, Math.max(2, right / 110)).map((value) => value + late);
    found.forEach((value, i) => {
      const at = x(value);
      ctx.textAlign = i === 0 ? "left" : at > right - 24 ? "right" : "center";
      ctx.fillText(late ? ago(value, late) : seconds(value, this.last), at, bottom + 11);
    });
    ctx.textAlign = "left";
    const now = clamp(x(cursor), 0, right);
    ctx.fillStyle = css(colors.ink);
    ctx.fillRect(Math.round(now) - 1, top - 4, 2, bottom - top + 4);
    ctx.beginPath();
    ctx.arc(now, top, 4, 0, 7);
    ctx.fill();
  }

  legend(ctx, x, tones) {
    const { frame, colors } = this.card, last = frame.time.length - 1;
    ctx.fillStyle = css(colors.ink);
    ctx.font = `600 12px ${colors.font}`;
    ctx.fillText("Pages", x, 8);
    ctx.font = `12px ${colors.font}`;
    ["free", "cached", "used", "host"].forEach((name, i) => {
      const y = 27 + i * 18;
      if (name === "host" && !frame.host_owner.length) return;
      ctx.fillStyle = css(tones[name]);
      if (name === "host") {
        ctx.fillRect(x, y - 1, 4, 2);
        ctx.fillRect(x + 7, y - 1, 4, 2);
      } else ctx.fillRect(x, y - 5, 11, 10);
      ctx.fillStyle = css(colors.faint);
      ctx.fillText(name, x + 17, y);
      ctx.fillStyle = css(colors.ink);
      ctx.textAlign = "right";
      ctx.fillText(grouped(frame[name][last]), x + LEGEND_WIDTH - 15, y);
      ctx.textAlign = "left";
    });
  }

  // The moment under the pointer, null outside of the chart.
  moment(x) {
    return x <= this.right ? this.from + clamp(x / this.right, 0, 1) * (this.to - this.from) : null;
  }

  words(x) {
    const time = this.moment(x), { frame } = this.card;
    if (time === null || time > Math.max(this.card.cursor, frame.time[frame.time.length - 1])) return null;
    const i = Math.max(0, countBelow(frame.time, time + 1e-12) - 1);
    return [clockTime(time, this.last), `${grouped(frame.used[i])} used`, `${grouped(frame.cached[i])} cached`,
      `${grouped(frame.free[i])} free`, `${grouped(frame.host[i])} on the host`];
  }
}

// Newest first; only what changed is touched.
export function showDecisions(list, decisions, scale) {
  const reached = decisions.length > 1 ? 0 : -1; // what scrolls can be scrolled by keys
  if (list.tabIndex !== reached) list.tabIndex = reached;
  while (list.children.length > Math.max(1, decisions.length)) list.lastChild.remove();
  decisions.forEach(([time, , text], i) => {
    const item = list.children[i] || make("li", "", list);
    if (!item.children.length) {
      item.textContent = "";
      make("span", "pw-text pw-when", item);
      make("span", "pw-text", item);
    }
    const when = clockTime(time, scale);
    if (item.children[0].textContent !== when) item.children[0].textContent = when;
    if (item.children[1].textContent !== text) item.children[1].textContent = text;
  });
  if (!decisions.length) {
    const item = list.children[0] || make("li", "pw-text", list);
    item.textContent = "None yet. Evictions, preemptions and rejections are told here.";
  }
}
