// Every page a cell, by memory (a wrapped grid in physical order) or by owner (a row for each).
// Cells are painted straight into an ImageData, so 20,000 of them cost a few milliseconds.

import { mix, pixel } from "../../canvas/colors.js";
import { NOBODY } from "../../canvas/frames.js";
import { clamp } from "../../canvas/numbers.js";
import { marked } from "../../canvas/texture.js";
import { drawOverCells } from "./marks.js";
import { CACHED, CAPTION, FREE, GUTTER, USED, pagesShown } from "./states.js";

const KEPT = 3; // how pale, among the shades of what is cached, a kept state is

// Where the cells are: `wide` by `tall` with `gap` between them included, in device pixels.
function gridLayout(frame, width, height, ratio) {
  const pages = pagesShown(frame), host = frame.host_owner.length, states = frame.states.length;
  const captions = (host ? CAPTION : 0) + (states ? CAPTION : 0), extra = captions * ratio;
  const rows = (columns) => [pages, host, states].reduce((n, count) => n + Math.ceil(count / columns), 0);
  let cell = Math.floor(40 * ratio);
  while (cell > 1 && rows(Math.floor(width / cell)) * cell + extra > height) cell -= 1;
  const columns = Math.max(1, Math.floor(width / cell));
  // What height is left over makes the cells a little taller than wide.
  const spare = Math.floor((height - extra) / Math.max(1, rows(columns)));
  const tall = clamp(spare, cell, Math.floor(cell * 1.34));
  const above = Math.ceil(pages / columns) * tall;
  const hostTop = above + (host ? CAPTION * ratio : 0), below = hostTop + Math.ceil(host / columns) * tall;
  return { kind: "memory", pages, wide: cell, tall, gap: gapOf(cell, ratio), columns, above, hostTop, below,
    stateTop: below + CAPTION * ratio };
}

// Cells of up to 6 pixels touch: a paler edge parts them, as a gap would eat half their colour.
function gapOf(cell, ratio) {
  const side = cell / ratio;
  return side <= 6 ? 0 : Math.round((side < 12 ? 1 : side < 26 ? 2 : 3) * ratio);
}

// Rows next to each other share a prefix: they are sorted by their first pages, swapped ones last.
function rowOrder(frame) {
  const { row_offset: offset, row_page: page } = frame;
  const rows = [...frame.row_owner.keys()];
  const key = (row, place) => {
    const at = offset[row] + place < offset[row + 1] ? page[offset[row] + place] : -1;
    return at < 0 ? 1e9 : at;
  };
  return rows.sort((a, b) => {
    for (let place = 0; place < 4; place++) {
      const difference = key(a, place) - key(b, place);
      if (difference) return difference;
    }
    return frame.row_owner[a] - frame.row_owner[b];
  });
}

function rowsLayout(frame, width, height, ratio, scroll) {
  const offset = frame.row_offset, rows = rowOrder(frame), gutter = GUTTER * ratio;
  let longest = 1;
  for (const row of rows) longest = Math.max(longest, offset[row + 1] - offset[row]);
  const room = width - gutter - 40 * ratio;
  const down = Math.floor(height / Math.max(1, rows.length));
  const pitch = clamp(down, 17 * ratio, 34 * ratio); // a row's name must stay readable
  const wide = clamp(Math.floor(room / longest), 4 * ratio, 2 * pitch);
  const tall = Math.min(pitch - ratio, 3 * wide);
  const fits = Math.max(1, Math.floor(height / pitch)), most = Math.max(0, rows.length - fits);
  const first = clamp(Math.round(scroll), 0, most);
  return { kind: "owner", wide, tall, gap: gapOf(Math.min(wide, tall), ratio), pitch, gutter, rows, first,
    most, visible: rows.slice(first, first + fits), columns: Math.max(1, Math.floor(room / wide)) };
}

// Colours of one owner in every state, as pixels. `dim`: another owner is chosen.
export function shades(colors, hue, dim) {
  const { paper, dark } = colors;
  const strength = dim ? 0.7 : 0;
  const full = mix(hue, paper, strength);
  return {
    color: full,
    full: pixel(full),
    edge: pixel(mix(full, paper, 0.5)),
    mark: pixel(mix(full, paper, 0.4)),
    part: pixel(mix(full, paper, 0.66)), // positions of the page not yet filled
    rim: pixel(mix(full, dark ? [255, 255, 255] : [0, 0, 0], 0.5)),
    fade: Array.from({ length: 16 }, (_, i) =>
      pixel(mix(hue, paper, clamp(0.5 + i * 0.027 + strength * 0.3, 0, 0.93)))),
    mass: Array.from({ length: 32 }, (_, i) =>
      pixel(mix(paper, full, 0.08 + 0.92 * i / 31))),
  };
}

export class Cells {
  constructor(card) {
    this.card = card;
    this.arrangement = "memory";
    this.byMass = false;
    this.scroll = 0;
    this.lit = new Set(); // pages lit from elsewhere (the icicle)
    this.pages = new Set(); // and by another view
    this.image = null;
  }

  // Owner shades change with the theme and the owners shown; what the chosen one holds stays bright.
  prepare(frame) {
    const { colors, chosen } = this.card;
    const known = frame.owners.indexOf(chosen), row = frame.row_owner.indexOf(known);
    if (this.shaded?.colors !== colors) { // few hues, many owners
      const each = (dim) => colors.hues.map((hue) => shades(colors, hue, dim));
      this.shaded = { colors, bright: each(false), dimmed: each(true) };
    }
    const all = (table) => Array.from(frame.owner_hue, (hue) => table[hue]);
    this.bright = all(this.shaded.bright);
    this.dimmed = known < 0 ? this.bright : all(this.shaded.dimmed);
    this.chosen = known;
    this.mine = new Set(known < 0 || row < 0 ? []
      : frame.row_page.subarray(frame.row_offset[row], frame.row_offset[row + 1]));
    this.free = pixel(mix(colors.paper, colors.idle, colors.dark ? 0.22 : 0.3));
    this.kept = pixel(mix(colors.idle, colors.paper, 0.3)); // of nobody who is shown
    this.paper = pixel(colors.paper);
    this.glow = pixel(colors.ink);
  }

  // The shades of what `owner` shows on a page; -1 - h is host page h.
  shade(page, owner) {
    return (this.mine.has(page) || owner === this.chosen ? this.bright : this.dimmed)[owner];
  }

  // A box with its top left corner at (x, y); the corners are left out where it is large enough.
  box(x, y, w, h, color) {
    const { pixels, width } = this, round = w >= 7 && h >= 7;
    for (let row = 0; row < h; row++) {
      const cut = round && (row === 0 || row === h - 1) ? 1 : 0;
      const start = (y + row) * width + x;
      pixels.fill(color, start + cut, start + w - cut);
    }
  }

  ring(x, y, w, h, thick, color) {
    const { pixels, width } = this, round = w >= 7 && h >= 7;
    for (let row = 0; row < h; row++) {
      const cut = round && (row === 0 || row === h - 1) ? 1 : 0;
      const start = (y + row) * width + x;
      if (row < thick || row >= h - thick) pixels.fill(color, start + cut, start + w - cut);
      else {
        pixels.fill(color, start, start + thick);
        pixels.fill(color, start + w - thick, start + w);
      }
    }
  }

  texture(x, y, w, h, kind, color) {
    const { pixels, width, unit } = this, period = (Math.min(w, h) < 9 * unit ? 4 : 6) * unit;
    for (let row = 1; row < h - 1; row++) {
      for (let column = 1; column < w - 1; column++) {
        if (marked(kind, column, row, period)) pixels[(y + row) * width + x + column] = color;
      }
    }
  }

  page(frame, page, x, y, w, h) {
    const state = frame.state[page], owner = frame.owner[page];
    const { unit } = this, parted = w > 2 && Math.min(w, h) <= 6 * unit ? unit : 0;
    if (parted && state === USED && owner !== NOBODY && !this.byMass) {
      this.box(x, y, w, h, this.shade(page, owner).edge);
    }
    w -= parted;
    h -= parted;
    if (state === FREE || owner === NOBODY) return this.box(x, y, w, h, this.free);
    const shade = this.shade(page, owner), side = Math.min(w, h) / unit;
    if (this.byMass && frame.mass) {
      return this.box(x, y, w, h, shade.mass[frame.mass[page] >> 3]);
    }
    if (state === CACHED) {
      const step = Math.min(15, Math.floor(Math.log2(1 + frame.age[page]) * 1.6));
      return this.box(x, y, w, h, shade.fade[step]);
    }
    this.box(x, y, w, h, shade.full);
    const texture = frame.owner_texture[owner];
    if (texture && side >= 4) this.texture(x, y, w, h, texture, shade.mark);
    const filled = frame.fill[page] / frame.page_size;
    if (filled < 1 && side >= 6) {
      const from = Math.round(w * filled);
      for (let row = 0; row < h; row++) {
        const cut = row === 0 || row === h - 1 ? 1 : 0, start = (y + row) * this.width + x;
        this.pixels.fill(shade.part, start + Math.max(from, cut), start + w - cut);
      }
    }
    if (frame.glow[page]) {
      const thick = (side < 14 ? 1 : 2) * unit;
      if (side >= 8) this.ring(x, y, w, h, 2 * thick, this.paper);
      this.ring(x, y, w, h, thick, this.glow);
    } else if (frame.refs[page] > 1 && side >= 4) {
      this.ring(x, y, w, h, (side < 14 ? 1 : 2) * unit, shade.rim);
    }
  }

  hostPage(page, owner, x, y, w, h) {
    if (owner === NOBODY) return this.box(x, y, w, h, this.free);
    this.box(x, y, w, h, this.paper);
    const thick = (Math.min(w, h) < 12 * this.unit ? 1 : 2) * this.unit;
    this.ring(x, y, w, h, thick, this.shade(-1 - page, owner).full);
  }

  // A recurrent state has no positions to fill: its owner's colour, pale where kept, framed if shared.
  statePage(frame, page, x, y, w, h) {
    const owner = frame.states_owner[page], held = frame.states[page];
    if (held === FREE) return this.box(x, y, w, h, this.free);
    const shade = owner === NOBODY ? null : this.shade(-1, owner);
    if (held !== USED || !shade) return this.box(x, y, w, h, shade ? shade.fade[KEPT] : this.kept);
    this.box(x, y, w, h, shade.full);
    if (frame.states_refs[page] > 1) this.ring(x, y, w, h, 2 * this.unit, shade.rim);
    return undefined;
  }

  draw(ctx, width, height, ratio) {
    const frame = this.card.frame;
    const w = Math.round(width * ratio), h = Math.round(height * ratio);
    if (!this.image || this.image.width !== w || this.image.height !== h) {
      this.image = new ImageData(w, h);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.width = w;
    this.ratio = ratio;
    this.unit = Math.max(1, Math.round(ratio)); // a thin line, in device pixels
    this.prepare(frame);
    this.pixels.fill(this.paper);
    const grid = this.arrangement === "memory";
    this.layout = grid ? gridLayout(frame, w, h, ratio)
      : rowsLayout(frame, w, h, ratio, this.scroll);
    if (grid) this.paintGrid(frame); else this.paintRows(frame);
    ctx.putImageData(this.image, 0, 0);
    drawOverCells(this, ctx, width, height);
  }

  paintGrid(frame) {
    const { pages, wide, tall, gap, columns, hostTop, stateTop } = this.layout;
    for (let page = 0; page < pages; page++) {
      const x = (page % columns) * wide, y = Math.floor(page / columns) * tall;
      this.page(frame, page, x, y, wide - gap, tall - gap);
    }
    frame.host_owner.forEach((owner, i) => {
      const x = (i % columns) * wide, y = hostTop + Math.floor(i / columns) * tall;
      this.hostPage(i, owner, x, y, wide - gap, tall - gap);
    });
    for (let page = 0; page < frame.states.length; page++) {
      const x = (page % columns) * wide, y = stateTop + Math.floor(page / columns) * tall;
      this.statePage(frame, page, x, y, wide - gap, tall - gap);
    }
  }

  paintRows(frame) {
    const { wide, tall, gap, pitch, gutter, visible, columns } = this.layout;
    visible.forEach((row, line) => {
      const start = frame.row_offset[row];
      const count = Math.min(columns, frame.row_offset[row + 1] - start);
      const y = line * pitch + Math.floor((pitch - tall + gap) / 2);
      for (let i = 0; i < count; i++) {
        const page = frame.row_page[start + i], x = gutter + i * wide;
        const box = [x, y, wide - gap, tall - gap];
        if (page < 0) this.hostPage(-1 - page, frame.row_owner[row], ...box);
        else this.page(frame, page, ...box);
      }
    });
  }

  // What is under the pointer (CSS pixels): {page}, {host}, {row} or null.
  at(x, y) {
    const layout = this.layout, frame = this.card.frame;
    if (!layout || !frame) return null;
    const px = x * this.ratio, py = y * this.ratio;
    if (layout.kind === "memory") {
      const column = Math.floor(px / layout.wide);
      if (column >= layout.columns || column < 0) return null;
      const page = Math.floor(py / layout.tall) * layout.columns + column;
      if (py < layout.above) return page < layout.pages ? { page } : null;
      const state = Math.floor((py - layout.stateTop) / layout.tall) * layout.columns + column;
      if (py >= layout.stateTop && state < frame.states.length) return { state };
      const host = Math.floor((py - layout.hostTop) / layout.tall) * layout.columns + column;
      return py >= layout.hostTop && host < frame.host_owner.length ? { host } : null;
    }
    const row = layout.visible[Math.floor(py / layout.pitch)];
    if (row === undefined) return null;
    const place = Math.floor((px - layout.gutter) / layout.wide);
    const start = frame.row_offset[row], count = frame.row_offset[row + 1] - start;
    if (place < 0 || place >= Math.min(count, layout.columns)) return { row };
    const page = frame.row_page[start + place];
    return page < 0 ? { row, host: -1 - page } : { row, page };
  }

  // Where a page is drawn: the centres of its cells in CSS pixels (several by owner).
  places(page) {
    const { layout, ratio } = this, frame = this.card.frame;
    if (layout.kind === "memory") {
      const { wide, tall, gap, columns } = layout;
      const x = (page % columns) * wide + (wide - gap) / 2;
      return [[x / ratio, (Math.floor(page / columns) * tall + (tall - gap) / 2) / ratio]];
    }
    const found = [];
    layout.visible.forEach((row, line) => {
      const start = frame.row_offset[row];
      const stop = Math.min(frame.row_offset[row + 1], start + layout.columns);
      const place = frame.row_page.subarray(start, stop).indexOf(page);
      if (place >= 0) found.push(this.centre(place, line));
    });
    return found;
  }

  centre(place, line) {
    const { wide, gap, pitch, gutter } = this.layout;
    return [(gutter + place * wide + (wide - gap) / 2) / this.ratio, (line + 0.5) * pitch / this.ratio];
  }
}
