// Who sees which block at the cursor: a row for each lane beside it, a column for each block.

import { css, mix, textOn } from "../../canvas/colors.js";
import { clamp, grouped } from "../../canvas/numbers.js";
import { LINE, LINES, READ_HEAD } from "../../canvas/reading.js";
import { fit } from "../../canvas/text.js";
import { hatchBand } from "../../canvas/texture.js";
import { readable } from "../../canvas/token_text.js";

const LEAST_CELL = 5;
const MOST_CELL = 52;
const MATRIX_PAD = 14;

export class SightMatrix {
  // `matrix.timeline` gives the rows; `tell(cell, event)` hears of the cell under the pointer.
  constructor(card, area, tell, click) {
    Object.assign(this, { card, area, timeline: null, over: null, starts: new Map(), look: null });
    this.surface = card.surface(area, (ctx, width, height) => this.draw(ctx, width, height), {
      pointermove: (x, y, event) => tell(this.over = this.cell(x, y), event),
      pointerleave: (_x, _y, event) => tell(this.over = null, event),
      pointerup: (x, y) => click(this.cell(x, y)),
      wheel: (x, y, event) => this.timeline.wheel(0, y, event),
      wheelDoes: () => (this.timeline.most > 0 ? "scrolls the lanes" : ""),
    });
    this.surface.canvas.setAttribute("role", "img");
    this.surface.canvas.setAttribute("aria-label", "Which thread sees which block, and at which position");
  }

  // A new frame: where the changes of each pair of lane and block lie.
  read(frame) {
    const { sight_row: row, sight_block: block } = frame, count = frame.blocks?.length || 0;
    this.starts.clear();
    this.look = null;
    for (let i = 0; row && i < row.length;) {
      const from = i;
      while (i < row.length && row[i] === row[from] && block[i] === block[from]) i += 1;
      this.starts.set(row[from] * count + block[from], [from, i]);
    }
    const width = count ? `${MATRIX_PAD + clamp(count * 44, 110, 900)}px` : "0px";
    this.area.style.flex = `0 0 min(38%, ${width})`;
    this.area.style.display = count ? "" : "none";
  }

  // Whether a lane is over by the cursor: then it shows, paler, what it saw up to its end.
  isOver(lane) { return this.card.frame.ended[this.timeline.at(lane)] <= this.card.cursor + 1e-12; }

  until(lane) {
    const { frame, cursor } = this.card;
    return this.isOver(lane) ? frame.ended[this.timeline.at(lane)] - 1e-9 : cursor + 1e-12;
  }

  // The offset at which a lane sees a block at the cursor; below zero: it does not.
  value(lane, block, by = this.until(lane)) {
    const { frame } = this.card, found = this.starts.get(lane * frame.blocks.length + block);
    if (!found) return -1;
    let [low, high] = found;
    while (low < high) { // the first change after that
      const middle = (low + high) >> 1;
      if (frame.sight_time[middle] <= by) low = middle + 1; else high = middle;
    }
    let at = low - 1;
    // What is known by its pages alone is given back some time before a lane is over.
    if (frame.by_pages && this.isOver(lane)) while (at >= found[0] && frame.sight_value[at] < 0) at -= 1;
    return at >= found[0] ? frame.sight_value[at] : -1;
  }

  measure(width) {
    const count = this.card.frame.blocks.length, room = width - MATRIX_PAD;
    this.wide = clamp(room / Math.max(1, count), LEAST_CELL, MOST_CELL);
    this.fits = Math.min(count, Math.floor(room / this.wide));
  }

  cell(x, y) {
    const { timeline: t, card } = this, block = Math.floor((x - MATRIX_PAD) / (this.wide || 1));
    if (!card.frame?.blocks || x < MATRIX_PAD || block >= this.fits) return null;
    const lane = t.lane(y), isHead = y > t.bottom;
    return lane >= 0 || isHead ? { lane: isHead ? -1 : lane, block } : null;
  }

  draw(ctx, width) {
    const { frame, colors } = this.card, t = this.timeline;
    if (!frame.blocks?.length || !t.pitch) return;
    this.measure(width);
    this.styles = Array.from({ length: this.fits }, (_, block) => this.shades(block));
    const right = MATRIX_PAD + this.fits * this.wide;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, t.top - 1, width, t.bottom - t.top + 2);
    ctx.clip();
    if (frame.modelled) hatchBand(ctx, colors, MATRIX_PAD, t.top, right - MATRIX_PAD, Math.min(t.bottom, t.y(frame.lanes)) - t.top);
    this.grid(ctx, t, right);
    for (const lane of t.visible()) this.row(ctx, t, lane);
    this.outline(ctx, t);
    ctx.restore();
    this.names(ctx, t);
    ctx.fillStyle = css(colors.faint);
    ctx.font = `12px ${colors.font}`;
    if (this.look) {
      ctx.fillText(fit(ctx, this.look.text, width - MATRIX_PAD), MATRIX_PAD, 9);
      return;
    }
    const more = this.fits < frame.block_total ? `${grouped(this.fits)} of ${grouped(frame.block_total)} blocks` : "blocks seen";
    ctx.fillText(fit(ctx, `${more} (number: offset)`, width - MATRIX_PAD), MATRIX_PAD, 9);
  }

  grid(ctx, t, right) {
    ctx.strokeStyle = css(this.card.colors.line);
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const lane of t.visible()) {
      const y = Math.round(t.y(lane) + t.pitch) - 0.5;
      if (t.pitch < 9) break;
      ctx.moveTo(MATRIX_PAD, y);
      ctx.lineTo(right, y);
    }
    for (let block = 0; block <= this.fits && this.wide >= 10; block++) {
      const x = Math.round(MATRIX_PAD + block * this.wide) - 0.5;
      ctx.moveTo(x, t.top);
      ctx.lineTo(x, Math.min(t.bottom, t.y(t.frame.lanes)));
    }
    ctx.stroke();
  }

  hue(block) {
    const { frame, colors } = this.card, row = frame.block_row[block], place = row - frame.lane0;
    return row >= 0 && place >= 0 && place < frame.names.length ? colors.hues[frame.hue[place]] : colors.faint;
  }

  // Colours of a block's cells where they are lit, where the thread is over, and where not lit.
  shades(block) {
    const hue = this.hue(block), { paper } = this.card.colors;
    return [0.1, 0.5, 0.78].map((share) => mix(hue, paper, share)).map((color) => [css(color), css(textOn(color))]);
  }

  row(ctx, t, lane) {
    const { frame, colors, chosen } = this.card, gap = this.wide >= 10 && t.pitch >= 9 ? 1 : 0, y = t.y(lane);
    const isKnown = chosen && (frame.names.includes(chosen) || frame.block_owner.includes(chosen));
    const isRowLit = !isKnown || frame.names[t.at(lane)] === chosen, isTall = t.pitch >= 14;
    const lit = this.isOver(lane) ? 1 : 0, by = this.until(lane);
    for (let block = 0; block < this.fits; block++) {
      if (this.look?.lane === lane) {
        this.share(ctx, t, lane, block, gap);
        continue;
      }
      const value = this.value(lane, block, by);
      if (value < 0) continue;
      const isLit = !this.look && (isRowLit || frame.block_owner[block] === chosen);
      const [fill, ink] = this.styles[block][isLit ? lit : 2];
      const x = MATRIX_PAD + block * this.wide;
      ctx.fillStyle = fill;
      ctx.fillRect(x + gap, y + gap, this.wide - 2 * gap - 0.5, t.pitch - 2 * gap - 0.5);
      if (!isTall || this.wide < 12) continue;
      const text = grouped(value);
      if (ctx.measureText(text).width > this.wide - 4) continue;
      ctx.fillStyle = ink;
      ctx.textAlign = "right";
      ctx.fillText(text, x + this.wide - 4, y + t.pitch / 2 + 0.5);
      ctx.textAlign = "left";
    }
  }

  // How much of a sampled token's attention a block got: a bar as high as its share of the most.
  share(ctx, t, lane, block, gap) {
    const { shares, most } = this.look, value = shares.get(block);
    if (value === undefined) return;
    const x = MATRIX_PAD + block * this.wide + gap, y = t.y(lane), wide = this.wide - 2 * gap - 0.5;
    const high = t.pitch - 2 * gap - 0.5, bar = Math.max(1, high * value / most);
    ctx.fillStyle = this.styles[block][2][0];
    ctx.fillRect(x, y + gap, wide, high);
    ctx.fillStyle = this.styles[block][0][0];
    ctx.fillRect(x, y + gap + high - bar, wide, bar);
    if (t.pitch < 14 || this.wide < 22) return;
    const text = `${Math.round(value * 100)}%`;
    if (ctx.measureText(text).width > this.wide - 4) return;
    const isFull = bar > high * 0.7; // otherwise the text stands above the bar
    ctx.fillStyle = this.styles[block][isFull ? 0 : 2][1];
    ctx.textAlign = "right";
    ctx.fillText(text, x + wide - 3, y + (isFull || t.pitch < 24 ? t.pitch / 2 + 0.5 : gap + 8));
    ctx.textAlign = "left";
  }

  outline(ctx, t) {
    const { over } = this;
    if (!over || over.lane < 0 || over.block >= this.fits) return;
    ctx.strokeStyle = css(this.card.colors.ink);
    ctx.lineWidth = 2;
    ctx.strokeRect(MATRIX_PAD + over.block * this.wide + 1, t.y(over.lane) + 1, this.wide - 3, t.pitch - 3);
  }

  // Names of blocks under their columns, upright where the columns are narrow.
  names(ctx, t) {
    const { frame, colors, chosen } = this.card, top = t.bottom + 8, room = READ_HEAD + LINE * LINES + 16;
    const every = Math.ceil(14 / this.wide), widest = Math.max(...frame.blocks.map((name) => ctx.measureText(name).width));
    const isUpright = widest > this.wide - 6;
    for (let block = 0; block < this.fits; block++) {
      const isLit = this.over?.block === block || (chosen && frame.block_owner[block] === chosen);
      if (block % every && !isLit) continue;
      const x = MATRIX_PAD + (block + 0.5) * this.wide;
      ctx.font = `${isLit ? 600 : 400} 12px ${colors.font}`;
      ctx.fillStyle = css(isLit ? colors.ink : colors.faint);
      const text = fit(ctx, readable(frame.blocks[block]), isUpright ? room : this.wide - 2);
      ctx.save();
      ctx.translate(x, isUpright ? top : top + 6);
      if (isUpright) ctx.rotate(Math.PI / 2);
      ctx.textAlign = isUpright ? "left" : "center";
      ctx.fillText(text, 0, 0);
      ctx.restore();
    }
    ctx.textAlign = "left";
  }

  words(cell) {
    const { frame } = this.card, block = frame.blocks[cell.block], owner = frame.block_owner[cell.block];
    if (cell.lane < 0) {
      let readers = 0;
      for (const [key] of this.starts) {
        if (key % frame.blocks.length === cell.block && this.value(Math.floor(key / frame.blocks.length), cell.block) >= 0) readers += 1;
      }
      return [block, `seen by ${grouped(readers)} threads`];
    }
    const name = this.timeline.known(cell.lane) ? frame.names[this.timeline.at(cell.lane)] : "", value = this.value(cell.lane, cell.block);
    const [sees, not] = this.isOver(cell.lane) ? ["saw", "did not see"] : ["sees", "does not see"];
    const what = value >= 0 ? `${sees} ${block} from position ${grouped(value)} on` : `${not} ${block}`;
    return [name, what, ...(owner !== block && owner !== name ? [`block of ${owner}`] : [])];
  }
}
