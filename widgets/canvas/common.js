// Shared by every canvas view: reading frames, colours, numbers, ticks. No drawing; no state but
// the textures once made.

const NOBODY = 65535;
const ARRAYS = {
  "|u1": Uint8Array, "|i1": Int8Array, "<u2": Uint16Array, "<i2": Int16Array,
  "<u4": Uint32Array, "<i4": Int32Array, "<f4": Float32Array, "<f8": Float64Array,
};

// Hosts hand binary over as DataView, ArrayBuffer or Uint8Array; here it is always the last.
function bytesOf(value) {
  if (!value) return new Uint8Array(0);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

// A packed frame (widgets/canvas/packing.py) as one object: plain values and typed arrays. null if empty.
function unpack(value) {
  let bytes = bytesOf(value);
  if (bytes.length < 8) return null;
  if (bytes.byteOffset % 8) bytes = bytes.slice();
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const frame = head.values;
  for (const [name, [kind, shape, offset]] of Object.entries(head.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    frame[name] = new ARRAYS[kind](bytes.buffer, bytes.byteOffset + 4 + length + offset, count);
  }
  return frame;
}

// --- colours: [red, green, blue] from 0 to 255 ---------------------------------------------------

function rgb(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

function mix(a, b, share) {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share));
}

function css(color, alpha = 1) {
  return `rgba(${color[0]},${color[1]},${color[2]},${alpha})`;
}

// One pixel of an ImageData seen through a Uint32Array (little-endian, opaque).
function pixel(color) {
  return (255 << 24 | color[2] << 16 | color[1] << 8 | color[0]) >>> 0;
}

function brightness([r, g, b]) {
  return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
}

function palette(options, dark) {
  const scheme = options[dark ? "dark" : "light"];
  const names = ["paper", "ink", "faint", "line", "idle", "raised", "wrong"];
  const colors = Object.fromEntries(names.map((name) => [name, rgb(scheme[name])]));
  return { ...colors, dark, hues: scheme.hues.map(rgb), font: options.font };
}

// Black or white text, whichever reads better on `color`.
function textOn(color) {
  return brightness(color) > 0.55 ? [20, 24, 29] : [255, 255, 255];
}

// --- texture: the second mark of owners whose hue repeats -----------------------------------------

// Whether the pixel (x, y) of texture 1, 2, 3 … carries the mark.
function marked(texture, x, y, period) {
  const kind = ((texture - 1) % 3) + 1;
  if (kind === 1) return (x + y) % period < period / 3;
  if (kind === 2) return (x - y + 4096 * period) % period < period / 3;
  return x % period < period / 2 && y % period < period / 2;
}

// Tiles and, for canvases, patterns by colour, texture and paper: views ask for the same few at
// every picture, and to make one costs more than to draw a lane.
const TILES = new Map(), PATTERNS = new Map(), MOST_KEPT = 400;

function kept(map, key, make) {
  if (!map.has(key)) {
    if (map.size >= MOST_KEPT) map.clear();
    map.set(key, make());
  }
  return map.get(key);
}

// A fill for `color` with its texture; plain where there is none.
function textured(ctx, color, texture, paper) {
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

// Diagonal lines over a box: modelled, not real.
function hatch(ctx, x, y, width, height, color) {
  ctx.strokeStyle = css(color);
  ctx.lineWidth = 1;
  ctx.beginPath();
  const first = Math.floor((x - height) / 5) * 5;
  for (let at = first; at < x + width; at += 5) {
    const from = Math.max(at, x), to = Math.min(at + height, x + width);
    if (to <= from) continue;
    ctx.moveTo(from, y + height - (from - at));
    ctx.lineTo(to, y + height - (to - at));
  }
  ctx.stroke();
}

// --- numbers --------------------------------------------------------------------------------------

function three(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size < 1e-4) return String(Number(value.toPrecision(3)).toExponential());
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return String(Number(value.toFixed(digits)));
}

// Seconds with the unit that fits `scale`, so that the ticks of one axis agree.
// `step`: apart from its neighbours by so much, so digits enough to tell them apart.
function seconds(value, scale = Math.abs(value), step = 0) {
  const units = [[60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [size, name] = units.find(([least]) => scale >= least * 0.9995) || units[1];
  const close = step > 0 && step < 0.01 * Math.abs(value);
  const digits = close ? clamp(Math.ceil(-Math.log10(step / size) - 1e-9), 0, 6) : 0;
  return `${close ? (value / size).toFixed(digits) : three(value / size)} ${name}`;
}

const SCALES = {
  "B": [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
  "": [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]],
};

// A value with its unit as `theme.figure` writes it; `scale` as in `seconds`.
function worded(value, unit = "", scale = Math.abs(value)) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (unit === "s") return seconds(value, scale);
  if (unit === "%") return `${three(value * 100)} %`;
  if (!unit && (scale < 1e4 || !value)) return three(value);
  const steps = SCALES[unit]
    || ["", "k", "M", "G", "T", "P", "E"].map((name, i) => [1e3 ** i, name + unit]);
  const [size, name] = steps.findLast(([least]) => scale >= least * 0.9995) || steps[0];
  return `${three(value / size)} ${name}`;
}

function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

// Round values from `low` to `high`, about `count` of them.
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

// Round moments: from a minute on they are round in minutes.
function timeTicks(low, high, count) {
  const unit = high >= 60 ? 60 : 1;
  return ticks(low / unit, high / unit, count).map((value) => value * unit);
}

// The number of sorted `values` below `wanted`.
function countBelow(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

// `text` cut to `width` pixels, with an ellipsis where it had to be.
function fit(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ctx.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

// A legend whose marks are drawn as the view draws them, made anew when the colours change:
// `tell(item, colors, hue)` calls `item(text, paint)` for each mark; `paint` draws in 14 by 14.
function drawnLegend(stage, legend, tell) {
  const key = JSON.stringify(stage.colors);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const { colors } = stage, hue = colors.hues[0];
  const item = (text, paint) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    span.append(text);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    ctx.fillStyle = ctx.strokeStyle = css(hue);
    ctx.lineWidth = 1.5;
    paint(ctx);
  };
  tell(item, colors, hue);
}
