// Textures: dots, the second mark of owners whose hue repeats; and hatching, slanted lines that stand
// behind what is modelled and nowhere else.

import { css, mix } from "./colors.js";

// A dot, two of them, a ring: rows of six pixels each.
const DOTS = [
  [0, 0b000110, 0b000110, 0, 0, 0],
  [0b000011, 0b000011, 0, 0b011000, 0b011000, 0],
  [0b001111, 0b001001, 0b001001, 0b001111, 0, 0],
];

// Whether the pixel (x, y) of texture 1, 2, 3 … carries the mark; it comes again every `period`.
export function marked(texture, x, y, period) {
  const row = Math.floor((y % period) * 6 / period), column = Math.floor((x % period) * 6 / period);
  return (DOTS[(texture - 1) % DOTS.length][row] >> column) & 1;
}

// Tiles and, for canvases, patterns by colour, texture and paper: views ask for the same few at
// every picture, and to make one costs more than to draw a lane.
const TILES = new Map();
const PATTERNS = new Map();
const MOST_KEPT = 400;

function kept(map, key, make) {
  if (!map.has(key)) {
    if (map.size >= MOST_KEPT) map.clear();
    map.set(key, make());
  }
  return map.get(key);
}

// A fill for `color` with its texture; plain where there is none.
export function textured(ctx, color, texture, paper) {
  if (!texture) return css(color);
  const key = `${color} ${texture} ${paper}`;
  const tile = kept(TILES, key, () => tileOf(color, texture, paper));
  if (ctx.isRecording) return ctx.createPattern(tile, "repeat");
  return kept(PATTERNS, key, () => ctx.createPattern(tile, "repeat"));
}

function tileOf(color, texture, paper) {
  const size = 6;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const brush = tile.getContext("2d");
  brush.fillStyle = css(color);
  brush.fillRect(0, 0, size, size);
  brush.fillStyle = css(mix(color, paper, 0.5));
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) if (marked(texture, x, y, size)) brush.fillRect(x, y, 1, 1);
  }
  return tile;
}

const HATCHED = 8; // pixels from line to line
const HATCH = 0.2; // of ink in the paper

// One band behind all marks of a plot that is modelled. On marks it would be a flicker: they are a
// few pixels wide.
export function hatchBand(ctx, { paper, ink }, x, y, width, height) {
  if (width > 0 && height > 0) hatch(ctx, x, y, width, height, mix(paper, ink, HATCH));
}

// Slanted lines over a box: modelled, not real.
export function hatch(ctx, x, y, width, height, color) {
  ctx.strokeStyle = css(color);
  ctx.lineWidth = 1;
  ctx.beginPath();
  const first = Math.floor((x - height) / HATCHED) * HATCHED;
  for (let at = first; at < x + width; at += HATCHED) {
    const from = Math.max(at, x), to = Math.min(at + height, x + width);
    if (to <= from) continue;
    ctx.moveTo(from, y + height - (from - at));
    ctx.lineTo(to, y + height - (to - at));
  }
  ctx.stroke();
}
