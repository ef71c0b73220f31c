// Tiles of one head: fetched when they come into sight, painted once in the theme's colours, kept.

import { mix, pixel } from "../canvas/colors.js";

export const CELLS = 256; // of a tile's side

const KEPT = 240; // painted tiles; the least recently drawn go first
const EVEN = 0.75; // the share of the shades that leads up to the hue itself
const AT_ONCE = 6; // fetched at a time

// Byte of a tile -> pixel: paper where nothing is seen, then darker with the logarithm.
export function shadesOf(colors) {
  const faint = mix(colors.paper, colors.idle, colors.dark ? 0.2 : 0.25);
  const [hue, strong] = [colors.hues[0], mix(colors.hues[0], colors.ink, colors.dark ? 0.55 : 0.6)];
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    if (!byte) return pixel(colors.paper);
    const share = (byte - 1) / 254;
    return pixel(share < EVEN ? mix(faint, hue, share / EVEN) : mix(hue, strong, (share - EVEN) / (1 - EVEN)));
  });
}

export class Tiles {
  // `changed` hears when another tile has come.
  constructor(changed) {
    Object.assign(this, { changed, kept: new Map(), wanted: new Map(), asked: new Map(), faults: 0 });
  }

  // Another head, or another request: what is asked for is asked for no more.
  turnTo(base) {
    if (base === this.base) return;
    this.base = base;
    for (const stop of this.asked.values()) stop.abort();
    this.asked.clear();
    this.wanted.clear();
    this.faults = 0;
  }

  repaint(colors) {
    if (this.colors === colors) return;
    this.colors = colors;
    this.shades = shadesOf(colors);
    for (const tile of this.kept.values()) tile.picture = null;
  }

  name(level, row, column) { return `${this.base}&level=${level}&row=${row}&column=${column}`; }

  // The picture of a tile, or null; what is not there is asked for, the newest first.
  get(level, row, column, isWanted = true) {
    const name = this.name(level, row, column), tile = this.kept.get(name);
    if (!tile) {
      if (isWanted) this.wanted.set(name, true);
      return null;
    }
    this.kept.delete(name); // the newest stand last
    this.kept.set(name, tile);
    tile.picture ||= this.paint(tile.bytes);
    return tile;
  }

  // After a picture: fetch what it lacked, and forget what an earlier one lacked.
  fetch() {
    for (const [name, stop] of this.asked) {
      if (!this.wanted.has(name)) stop.abort();
    }
    for (const name of this.wanted.keys()) {
      if (this.asked.size >= AT_ONCE || this.faults > 20) break;
      if (!this.asked.has(name)) this.ask(name);
    }
    this.wanted.clear();
  }

  async ask(name) {
    const stop = new AbortController();
    this.asked.set(name, stop);
    try {
      const answer = await fetch(name, { signal: stop.signal });
      if (!answer.ok) throw new Error(await answer.text());
      this.kept.set(name, { bytes: new Uint8Array(await answer.arrayBuffer()), picture: null });
      for (const old of this.kept.keys()) {
        if (this.kept.size <= KEPT) break;
        this.kept.delete(old);
      }
    } catch (fault) {
      if (fault.name !== "AbortError") [this.faults, this.fault] = [this.faults + 1, String(fault.message)];
    }
    if (this.asked.get(name) === stop) this.asked.delete(name);
    this.changed();
  }

  paint(bytes) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = CELLS;
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(CELLS, CELLS);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) pixels[i] = this.shades[bytes[i]];
    ctx.putImageData(image, 0, 0);
    return canvas;
  }
}

// What a byte stands for: a weight from 1e-5 to 1, 0 where no key is seen.
export function weightOf(byte) { return byte ? 10 ** (5 * ((byte - 1) / 254 - 1)) : 0; }
