// The prefix tree as an icicle: a block is as wide as its tokens and as dark as its references.

import { css, mix, textOn } from "../../canvas/colors.js";
import { grouped, ticks } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";

const AXIS = 18;
const HEADING = 20;

export class Icicle {
  constructor(card) {
    this.card = card;
    this.hovered = -1;
    this.boxes = [];
  }

  draw(ctx, width, height) {
    const { frame, colors } = this.card;
    ctx.fillStyle = css(colors.ink);
    ctx.font = `600 12px ${colors.font}`;
    ctx.fillText("Prefix tree", 0, 8);
    ctx.font = `12px ${colors.font}`;
    ctx.fillStyle = css(colors.faint);
    const at = ctx.measureText("Prefix tree").width + 16;
    ctx.fillText(fit(ctx, "width: tokens · shade: references", width - at), at, 8);
    const count = frame.tree_x.length;
    this.boxes = [];
    if (!count) {
      ctx.fillText(fit(ctx, "No full page has been indexed yet.", width), 0, HEADING + 16);
      return;
    }
    this.top = HEADING;
    this.bottom = height - AXIS - this.footer(ctx, width, height);
    let longest = frame.lookup.hit + frame.lookup.miss;
    for (let i = 0; i < count; i++) longest = Math.max(longest, frame.tree_x[i] + frame.tree_width[i]);
    this.scale = (width - 1) / longest;
    this.most = frame.tree_refs.reduce((a, b) => Math.max(a, b), 1);
    for (let i = 0; i < count; i++) this.block(ctx, i);
    this.axis(ctx, longest, width);
    this.lookup(ctx, width);
  }

  shade(refs) {
    const { paper, ink } = this.card.colors;
    const share = refs ? 0.16 + 0.5 * Math.log2(1 + refs) / Math.log2(1 + this.most) : 0.1;
    return mix(paper, ink, share);
  }

  block(ctx, i) {
    const { frame, colors } = this.card, span = this.bottom - this.top;
    const x = frame.tree_x[i] * this.scale, width = frame.tree_width[i] * this.scale;
    const y = this.top + frame.tree_top[i] * span, height = frame.tree_height[i] * span;
    const thin = height > 3 ? 1 : 0;
    this.boxes.push([x, y, width, height]);
    const color = this.shade(frame.tree_refs[i]);
    ctx.fillStyle = css(color);
    ctx.fillRect(x, y, Math.max(1, width - 1), Math.max(0.5, height - thin));
    if (this.hovered === i) {
      ctx.strokeStyle = css(colors.ink);
      ctx.lineWidth = 2;
      ctx.strokeRect(x + 1, y + 1, width - 3, Math.max(1, height - 3));
    }
    if (height < 15 || width < 40) return;
    const pages = frame.tree_offset[i + 1] - frame.tree_offset[i], refs = frame.tree_refs[i];
    const tokens = grouped(frame.tree_width[i]);
    const long = `${tokens} tokens${refs > 1 ? ` · ${refs} requests` : ""}`;
    const gathered = frame.tree_gathered[i];
    const text = gathered ? `${gathered} more` : ctx.measureText(long).width < width - 12 ? long : tokens;
    if (ctx.measureText(text).width > width - 8 || !pages) return;
    ctx.fillStyle = css(textOn(color));
    ctx.fillText(text, x + 6, y + Math.min(height / 2, 14));
  }

  axis(ctx, longest, width) {
    const { colors } = this.card, y = this.bottom;
    ctx.fillStyle = css(colors.faint);
    ctx.strokeStyle = css(colors.line);
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, y + 0.5);
    ctx.lineTo(width, y + 0.5);
    const found = ticks(0, longest, Math.max(2, width / 90));
    found.forEach((value, i) => {
      const x = value * this.scale;
      ctx.moveTo(Math.round(x) + 0.5, y);
      ctx.lineTo(Math.round(x) + 0.5, y + 4);
      ctx.textAlign = i === 0 ? "left" : x > width - 30 ? "right" : "center";
      ctx.fillText(grouped(value) + (i === 0 ? " tokens" : ""), i === 0 ? 0 : x, y + 12);
    });
    ctx.stroke();
    ctx.textAlign = "left";
  }

  // The last lookup in words, under the axis; returns how much height it takes.
  footer(ctx, width, height) {
    const { frame, colors } = this.card, { owner, hit, miss } = frame.lookup;
    if (!owner) return 0;
    ctx.font = `12px ${colors.font}`;
    ctx.fillStyle = css(colors.ink);
    const text = `Last lookup, ${owner}: ${grouped(hit)} tokens hit, ${grouped(miss)} missed`;
    ctx.fillText(fit(ctx, text, width), 0, height - 9);
    return 20;
  }

  // The path of the last lookup: what it found is outlined, what it missed hangs on, dashed.
  lookup(ctx, width) {
    const { frame, colors } = this.card, { hit, miss, owner } = frame.lookup;
    if (!owner) return;
    const path = new Set(frame.path);
    let end = null;
    ctx.strokeStyle = css(colors.ink);
    ctx.lineWidth = 2;
    this.boxes.forEach(([x, y, w, h], i) => {
      let found = 0;
      for (let k = frame.tree_offset[i]; k < frame.tree_offset[i + 1]; k++) {
        found += path.has(frame.tree_pages[k]);
      }
      if (!found || frame.tree_gathered[i]) return;
      const part = Math.min(w, found * frame.page_size * this.scale);
      ctx.strokeRect(x + 1, y + 1, Math.max(1, part - 3), Math.max(1, h - 3));
      if (!end || x + part > end[0]) end = [x + part, y, h];
    });
    if (!miss) return;
    const height = 14, [x, y] = end ? [end[0], end[1] + Math.max(0, end[2] / 2 - height / 2)]
      : [0, this.bottom - height - 4];
    const w = Math.min(width - x, miss * this.scale);
    ctx.fillStyle = css(colors.paper, 0.92);
    ctx.fillRect(x, y, w, height);
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(x + 1, y, Math.max(2, w - 2), height);
    ctx.setLineDash([]);
    const text = `${grouped(miss)} missed`;
    ctx.fillStyle = css(colors.ink);
    if (ctx.measureText(text).width < w - 8) ctx.fillText(text, x + 6, y + height / 2 + 0.5);
  }

  at(x, y) {
    for (let i = this.boxes.length - 1; i >= 0; i--) {
      const [left, top, width, height] = this.boxes[i];
      if (x >= left && x < left + width && y >= top && y < top + height) return i;
    }
    return -1;
  }

  pages(i) {
    const frame = this.card.frame;
    return frame.tree_pages.subarray(frame.tree_offset[i], frame.tree_offset[i + 1]);
  }

  words(i) {
    const frame = this.card.frame, pages = this.pages(i), gathered = frame.tree_gathered[i];
    if (gathered) return [`${gathered} small branches`, "too many to draw one by one"];
    const start = frame.tree_x[i], stop = start + frame.tree_width[i];
    const refs = frame.tree_refs[i];
    return [`${grouped(frame.tree_width[i])} tokens in ${grouped(pages.length)} pages`,
      `positions ${grouped(start)}–${grouped(stop - 1)}`,
      refs ? `${refs} ${refs > 1 ? "requests use" : "request uses"} it now` : "cached, nobody uses it now"];
  }
}
