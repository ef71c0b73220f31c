// One head as queries by keys: tiles under a window that pans and zooms, pages and tokens beside it.

import { css, mix } from "../canvas/colors.js";
import { clamp, countBelow, grouped, three, ticks } from "../canvas/numbers.js";
import { fit } from "../canvas/text.js";
import { CELLS, weightOf } from "./tiles.js";

// pixels
export const LEFT = 92;
const TOP = 44; // what each key receives
const PAGES = 18;
const BELOW = 84;
const TEXT = 13; // of a token, from which on it is written
const MOST = 40; // of a token, at most

export class Matrix {
  constructor(card, tiles) {
    Object.assign(this, { card, tiles, how: "most", hover: null, x: 0, y: 0, scale: 0, received: null });
  }

  get frame() { return this.card.frame; }

  // Pixels a token takes where all of them are in sight.
  get least() { return Math.min(this.wide, this.high) / Math.max(1, this.frame.tokens); }

  room(width, height) {
    const before = this.wide;
    [this.wide, this.high] = [Math.max(40, width - LEFT - 8), Math.max(40, height - TOP - PAGES - BELOW)];
    if (!this.scale || this.whole) this.all(); else if (before !== this.wide) this.keep();
  }

  all() {
    [this.x, this.y, this.scale, this.whole] = [0, 0, this.least, true];
    this.card.schedule();
  }

  keep() {
    const { tokens } = this.frame;
    this.scale = clamp(this.scale, this.least, Math.max(this.least, MOST));
    this.x = clamp(this.x, 0, Math.max(0, tokens - this.wide / this.scale));
    this.y = clamp(this.y, 0, Math.max(0, tokens - this.high / this.scale));
    this.whole = this.scale <= this.least * 1.001;
    this.card.schedule();
  }

  pan(right, down) {
    const [x, y] = [this.x, this.y];
    this.x += right / this.scale;
    this.y += down / this.scale;
    this.keep();
    return x !== this.x || y !== this.y;
  }

  // `at`: pixels of the canvas that stay where they are.
  zoom(by, at = [LEFT + this.wide / 2, TOP + this.high / 2]) {
    const [key, query] = [this.x + (at[0] - LEFT) / this.scale, this.y + (at[1] - TOP) / this.scale];
    const before = this.scale;
    this.scale = clamp(before * by, this.least, Math.max(this.least, MOST));
    [this.x, this.y] = [key - (at[0] - LEFT) / this.scale, query - (at[1] - TOP) / this.scale];
    this.keep();
    return before !== this.scale;
  }

  // The level whose cells are about a pixel of the screen.
  level(ratio) { return clamp(Math.floor(Math.log2(1 / (this.scale * ratio)) + 0.01), 0, this.frame.top); }

  draw(ctx, width, height, ratio) {
    this.room(width, height);
    this.tiles.repaint(this.card.colors);
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT, TOP, this.wide, this.high);
    ctx.clip();
    this.drawTiles(ctx, ratio);
    ctx.restore();
    this.drawReceived(ctx);
    this.drawPages(ctx);
    this.drawTokens(ctx, height);
    this.drawHover(ctx);
    this.tiles.fetch();
  }

  drawTiles(ctx, ratio) {
    const level = (this.shown = this.level(ratio)), side = CELLS * 2 ** level, { tokens } = this.frame;
    ctx.imageSmoothingEnabled = false;
    const last = (start, room) => Math.floor(Math.min(tokens - 1, start + room / this.scale) / side);
    for (let row = Math.floor(this.y / side); row <= last(this.y, this.high); row++) {
      for (let column = Math.floor(this.x / side); column <= Math.min(row, last(this.x, this.wide)); column++) {
        this.drawTile(ctx, level, row, column);
      }
    }
  }

  // A tile, or the part of a coarser one that lies there until it comes.
  drawTile(ctx, level, row, column) {
    const side = CELLS * 2 ** level * this.scale;
    const x = LEFT + column * side - this.x * this.scale, y = TOP + row * side - this.y * this.scale;
    const tile = this.tiles.get(level, row, column);
    if (tile) return ctx.drawImage(tile.picture, x, y, side, side);
    for (let up = 1; level + up <= this.frame.top; up++) {
      const by = 2 ** up, coarse = this.tiles.get(level + up, Math.floor(row / by), Math.floor(column / by), level + up === this.frame.top);
      if (!coarse) continue;
      const part = CELLS / by;
      return ctx.drawImage(coarse.picture, (column % by) * part, (row % by) * part, part, part, x, y, side, side);
    }
    return undefined;
  }

  // Above: the share of all attention that each key receives, by the logarithm, as the tiles.
  drawReceived(ctx) {
    const { received, card } = this, { colors } = card;
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "right";
    ctx.fillText("received", LEFT - 8, 14);
    ctx.fillText("share, log", LEFT - 8, 30);
    if (!received) return;
    const width = Math.max(1, this.scale - (this.scale > 6 ? 1 : 0));
    const step = Math.max(1, Math.floor(1 / this.scale));
    ctx.fillStyle = css(mix(colors.hues[0], colors.ink, 0.2));
    for (let key = Math.floor(this.x); key < Math.min(received.length, this.x + this.wide / this.scale); key += step) {
      let most = received[key];
      for (let next = key + 1; next < Math.min(key + step, received.length); next++) most = Math.max(most, received[next]);
      const tall = clamp((1 + Math.log10(Math.max(most, 1e-5)) / 5) * (TOP - 8), 1, TOP - 8);
      const x = LEFT + (key - this.x) * this.scale, from = Math.max(LEFT, x);
      ctx.fillRect(from, TOP - 4 - tall, Math.min(LEFT + this.wide, x + width) - from, tall);
    }
  }

  pageAt(key) {
    const { page_start: starts, page_size: size } = this.frame, place = countBelow(starts, key + 1) - 1;
    return place >= 0 && key < starts[place] + size ? place : -1;
  }

  get chosenPage() {
    const [kind, number] = this.card.chosen.split(":");
    return kind === "page" ? this.frame.page_number.indexOf(Number(number)) : -1;
  }

  // Below: the cache's pages, each as dark as what its keys receive; the chosen one's columns lit.
  drawPages(ctx) {
    const { frame, card, received } = this, { colors } = card, y = TOP + this.high + 4;
    const sums = frame.page_start.map(() => 0);
    if (received !== this.summed) {
      this.sums = Array.from(sums, (_, i) => {
        let sum = 0;
        for (let key = frame.page_start[i]; key < Math.min(frame.page_start[i] + frame.page_size, frame.tokens); key++) sum += received ? received[key] : 0;
        return sum;
      });
      this.summed = received;
    }
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "right";
    if (frame.page_start.length) ctx.fillText("cache page", LEFT - 8, y + PAGES / 2 - 2);
    const chosen = this.chosenPage, over = this.hover ? this.pageAt(this.hover.key) : -1;
    frame.page_start.forEach((start, i) => {
      const x = LEFT + (start - this.x) * this.scale, w = frame.page_size * this.scale;
      if (x + w < LEFT || x > LEFT + this.wide) return;
      const [from, to] = [Math.max(LEFT, x), Math.min(LEFT + this.wide, x + w)];
      const share = this.sums ? clamp(1 + Math.log10(Math.max(this.sums[i], 1e-5)) / 5, 0.06, 1) : 0.1;
      ctx.fillStyle = css(mix(colors.paper, colors.hues[0], share));
      ctx.fillRect(from, y, Math.max(0.5, to - from - (w > 4 ? 1 : 0)), PAGES - 6);
      if (i !== chosen && i !== over) return;
      ctx.strokeStyle = css(colors.ink);
      ctx.lineWidth = i === chosen ? 2 : 1;
      ctx.strokeRect(from, y, Math.max(2, to - from - 1), PAGES - 6);
      if (i !== chosen) return;
      ctx.fillStyle = css(colors.hues[1], 0.16);
      ctx.fillRect(from, TOP, to - from, this.high);
      ctx.strokeRect(from, TOP, Math.max(2, to - from - 1), this.high);
    });
  }

  // Numbers along both sides; tokens' texts as soon as there is room for them.
  drawTokens(ctx, height) {
    const { frame, card } = this, { colors } = card, base = TOP + this.high + PAGES + 2;
    ctx.strokeStyle = css(colors.line);
    ctx.lineWidth = 1;
    ctx.strokeRect(LEFT, TOP, Math.min(this.wide, frame.tokens * this.scale), Math.min(this.high, frame.tokens * this.scale));
    ctx.fillStyle = css(colors.faint);
    const right = Math.min(frame.tokens, this.x + this.wide / this.scale), low = Math.min(frame.tokens, this.y + this.high / this.scale);
    if (this.scale >= TEXT) {
      for (let query = Math.floor(this.y); query < low; query++) {
        const y = TOP + (query + 0.5 - this.y) * this.scale;
        if (y < TOP + 6 || y > TOP + this.high - 4) continue;
        ctx.textAlign = "right";
        ctx.fillStyle = css(this.hover?.query === query ? colors.ink : colors.faint);
        ctx.fillText(fit(ctx, seen(frame.texts[query]), LEFT - 12), LEFT - 6, y);
      }
      for (let key = Math.floor(this.x); key < right; key++) {
        const x = LEFT + (key + 0.5 - this.x) * this.scale;
        if (x < LEFT || x > LEFT + this.wide) continue;
        ctx.save();
        ctx.translate(x, base + 4);
        ctx.rotate(Math.PI / 2);
        ctx.textAlign = "left";
        ctx.fillStyle = css(this.hover?.key === key ? colors.ink : colors.faint);
        ctx.fillText(fit(ctx, seen(frame.texts[key]), BELOW - 30), 0, 0);
        ctx.restore();
      }
    } else {
      ctx.textAlign = "right";
      for (const query of ticks(this.y, low, this.high / 60)) {
        ctx.fillText(grouped(query), LEFT - 6, clamp(TOP + (query - this.y) * this.scale, TOP + 6, TOP + this.high - 6));
      }
      ctx.textAlign = "center";
      for (const key of ticks(this.x, right, this.wide / 90)) {
        ctx.fillText(grouped(key), clamp(LEFT + (key - this.x) * this.scale, LEFT + 4, LEFT + this.wide - 12), base + 8);
      }
    }
    ctx.fillStyle = css(colors.ink);
    ctx.textAlign = "left";
    ctx.fillText("key: the token looked at, by position →", LEFT, height - 8);
    ctx.save();
    ctx.translate(10, TOP + this.high);
    ctx.rotate(-Math.PI / 2);
    if (this.scale < TEXT) ctx.fillText("← query: the token that looks, by position", 0, 0);
    ctx.restore();
  }

  drawHover(ctx) {
    if (!this.hover) return;
    const { colors } = this.card, { query, key } = this.hover;
    const x = LEFT + (key + 0.5 - this.x) * this.scale, y = TOP + (query + 0.5 - this.y) * this.scale;
    ctx.strokeStyle = css(colors.ink, 0.45);
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(LEFT, y);
    ctx.lineTo(LEFT + this.wide, y);
    ctx.moveTo(x, TOP);
    ctx.lineTo(x, TOP + this.high);
    ctx.stroke();
  }

  // The tokens under the pointer, or null.
  at(x, y) {
    if (!this.frame || x < LEFT || x > LEFT + this.wide || y < TOP) return null;
    const key = Math.floor(this.x + (x - LEFT) / this.scale);
    if (key >= this.frame.tokens) return null;
    const query = Math.floor(this.y + (y - TOP) / this.scale);
    return y <= TOP + this.high ? (query < this.frame.tokens ? { key, query } : null)
      : y <= TOP + this.high + PAGES ? { key, query: -1 } : null;
  }

  words({ key, query }) {
    const { frame } = this, page = this.pageAt(key), lines = [];
    const held = page < 0 ? "" : `key on page ${frame.page_number[page]}, whose keys receive ${three(this.sums[page] * 100)} % of this head's attention`;
    if (query < 0) return [held || "no page is known"];
    if (key > query) lines.push(`${quoted(frame, key)} comes after ${quoted(frame, query)}`);
    else {
      const level = this.shown, side = CELLS * 2 ** level;
      const tile = this.tiles.get(level, Math.floor(query / side), Math.floor(key / side), false);
      const cell = (at) => Math.floor((at % side) / 2 ** level);
      const weight = tile ? weightOf(tile.bytes[cell(query) * CELLS + cell(key)]) : null;
      lines.push(...this.told(level, key, query, weight));
    }
    if (this.received) lines.push(`${quoted(frame, key)} receives ${three(this.received[key] * 100)} % of this head's attention`);
    if (held) lines.push(held);
    return lines;
  }

  told(level, key, query, weight) {
    const { frame } = this, said = weight === null ? "…" : weight <= 1.02e-5 ? "0.001 % or less" : `${three(weight * 100)} %`;
    if (!level) return [`${quoted(frame, query)} gives ${said} of its attention to ${quoted(frame, key)}`];
    const span = (at) => { const from = at - at % 2 ** level; return `${grouped(from)}–${grouped(Math.min(frame.tokens, from + 2 ** level) - 1)}`; };
    const what = this.how === "most" ? "the largest weight is" : "a query gives, in the mean,";
    return [`queries ${span(query)}, keys ${span(key)}: ${what} ${said}`, `at the pointer: ${quoted(frame, query)} looks at ${quoted(frame, key)}`];
  }
}

// A token as it can be seen: line ends and spaces by signs.
function seen(text) { return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "·"); }

function quoted(frame, at) { return `“${seen(frame.texts[at])}” (${grouped(at)})`; }
