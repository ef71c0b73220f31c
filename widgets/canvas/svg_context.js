// A drawing context that writes SVG: what a view draws on its canvas, as vectors, by the same code.
// Only what the views use of a 2D context is here. Numbers keep one decimal, colours are grouped.

import { css } from "./colors.js";

const MOST_BOXES = 200000; // of an image; beyond that it stays an image

export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\u{10ffff}]/gu, "\ufffd"); // what XML cannot hold
}

// An element as text; its end is put together, as this script must not hold one whole.
export function element(name, attributes, inner = "") {
  return `<${name} ${attributes}>${inner}<${"/"}${name}>`;
}

const GROUP_END = `<${"/"}g>`;
export const short = (value) => String(Math.round(value * 10) / 10);
const FRESH = {
  fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left",
  textBaseline: "alphabetic", globalAlpha: 1, lineJoin: "miter", lineCap: "butt",
};

export class SvgContext {
  constructor(width, height, prefix) {
    Object.assign(this, FRESH, { width, height, prefix, isRecording: true });
    this.parts = [];
    this.defs = [];
    this.named = new Map(); // a definition's text -> its id
    this.dash = [];
    this.matrix = [1, 0, 0, 1, 0, 0];
    this.stack = [];
    this.groups = 0; // open since the last save
    this.path = "";
    this.pending = null; // boxes or lines of one style that follow each other
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  toString() {
    this.flush();
    const open = this.groups + this.stack.reduce((sum, state) => sum + state.groups, 0);
    return element("defs", "", this.defs.join("")) + this.parts.join("") + GROUP_END.repeat(open);
  }

  // --- state ----------------------------------------------------------------------------------------

  save() {
    const kept = Object.fromEntries(Object.keys(FRESH).map((name) => [name, this[name]]));
    this.stack.push({ ...kept, dash: this.dash, matrix: this.matrix, groups: this.groups });
    this.groups = 0;
  }

  restore() {
    if (!this.stack.length) return;
    this.flush();
    this.parts.push(GROUP_END.repeat(this.groups));
    Object.assign(this, this.stack.pop());
  }

  setLineDash(dash) { this.dash = dash; }
  translate(x, y) { this.transform(1, 0, 0, 1, x, y); }
  scale(x, y) { this.transform(x, 0, 0, y, 0, 0); }
  rotate(angle) {
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    this.transform(c, s, -s, c, 0, 0);
  }

  transform(a, b, c, d, e, f) {
    const [A, B, C, D, E, F] = this.matrix;
    this.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d,
      A * e + C * f + E, B * e + D * f + F];
  }

  at(x, y) {
    const [a, b, c, d, e, f] = this.matrix;
    return `${short(a * x + c * y + e)} ${short(b * x + d * y + f)}`;
  }

  get isTurned() { return this.matrix[1] !== 0 || this.matrix[2] !== 0; }

  define(text) {
    if (!this.named.has(text)) {
      const id = `${this.prefix}-${this.named.size}`;
      this.named.set(text, id);
      this.defs.push(text.replace("ID", id));
    }
    return this.named.get(text);
  }

  // A style as attributes: rgba() becomes a colour and its opacity.
  paint(name, style) {
    if (style.pattern) return `${name}="url(#${style.pattern})"`;
    const found = /^rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)$/.exec(style);
    const color = !found ? escaped(style)
      : `#${found.slice(1, 4).map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
    const alpha = (found && found[4] !== undefined ? Number(found[4]) : 1) * this.globalAlpha;
    return `${name}="${color}"${alpha < 1 ? ` ${name}-opacity="${Math.round(alpha * 1000) / 1000}"` : ""}`;
  }

  // --- paths ----------------------------------------------------------------------------------------

  beginPath() { this.path = ""; }
  closePath() { this.path += "Z"; }
  moveTo(x, y) { this.path += `M${this.at(x, y)}`; }
  lineTo(x, y) { this.path += `${this.path ? "L" : "M"}${this.at(x, y)}`; }
  bezierCurveTo(a, b, c, d, x, y) { this.path += `C${this.at(a, b)} ${this.at(c, d)} ${this.at(x, y)}`; }

  rect(x, y, width, height) {
    this.path += this.isTurned
      ? `M${this.at(x, y)}L${this.at(x + width, y)}L${this.at(x + width, y + height)}L${this.at(x, y + height)}Z`
      : `M${this.at(x, y)}h${short(width * this.matrix[0])}v${short(height * this.matrix[3])}h${short(-width * this.matrix[0])}Z`;
  }

  roundRect(x, y, width, height) { this.rect(x, y, width, height); }

  arc(x, y, radius, from, to) {
    const point = (angle) => this.at(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    const r = short(radius * Math.hypot(this.matrix[0], this.matrix[1]));
    const turn = Math.min(to - from, 2 * Math.PI);
    this.path += `M${point(from)}`;
    if (turn > 6.28) this.path += `A${r} ${r} 0 1 1 ${point(from + Math.PI)}A${r} ${r} 0 1 1 ${point(from)}Z`;
    else this.path += `A${r} ${r} 0 ${turn > Math.PI ? 1 : 0} 1 ${point(to)}`;
  }

  fill() { this.emit(this.paint("fill", this.fillStyle), this.path); }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const join = this.lineJoin === "miter" ? "" : ` stroke-linejoin="${this.lineJoin}"`;
    this.emit(`fill="none" ${this.paint("stroke", this.strokeStyle)} stroke-width="${short(this.lineWidth)}"${dash}${join}`, this.path);
  }

  clip() {
    this.flush();
    const id = this.define(element("clipPath", 'id="ID"', `<path d="${this.path}"/>`));
    this.parts.push(`<g clip-path="url(#${id})">`);
    this.groups += 1;
  }

  // Shapes of one style that follow each other become one path, unless they shine through.
  emit(style, path) {
    if (!path) return;
    if (this.pending?.style === style && !style.includes("opacity")) {
      this.pending.paths.push(path);
      return;
    }
    this.flush();
    this.pending = { style, paths: [path] };
  }

  flush() {
    if (this.pending) this.parts.push(`<path ${this.pending.style} d="${this.pending.paths.join("")}"/>`);
    this.pending = null;
  }

  // --- boxes, text and images -----------------------------------------------------------------------

  clearRect() {}

  boxed(x, y, width, height, act) {
    const before = this.path;
    this.path = "";
    this.rect(x, y, width, height);
    act();
    this.path = before;
  }

  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.boxed(x, y, width, height, () => this.fill());
  }

  strokeRect(x, y, width, height) { this.boxed(x, y, width, height, () => this.stroke()); }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text, x, y) {
    if (!String(text)) return;
    this.flush();
    const [, weight, size] = /^(?:(\d+|bold|normal)\s+)?([\d.]+)px/.exec(this.font) || [0, "", "12"];
    const drop = { middle: 0.35, top: 0.85 }[this.textBaseline] || 0; // of the size, to the baseline
    const anchor = { center: "middle", right: "end" }[this.textAlign];
    const heavy = Number(weight) >= 600 || weight === "bold" ? ` font-weight="${weight}"` : "";
    const place = `x="${short(x)}" y="${short(y + drop * Number(size))}"`;
    const turn = this.matrix.join() === "1,0,0,1,0,0" ? "" : ` transform="matrix(${this.matrix.map((v) => Math.round(v * 1e4) / 1e4).join(" ")})"`;
    const kept = /^\s|\s$|\s\s/.test(text) ? ' style="white-space:pre"' : "";
    const side = anchor ? ` text-anchor="${anchor}"` : "";
    const look = `font-size="${size}"${heavy}${side} ${this.paint("fill", this.fillStyle)}`;
    this.parts.push(element("text", `${place}${turn}${kept} ${look}`, escaped(text)));
  }

  createPattern(tile) {
    const image = `<image width="${tile.width}" height="${tile.height}" href="${tile.toDataURL()}"/>`;
    const size = `id="ID" width="${tile.width}" height="${tile.height}" patternUnits="userSpaceOnUse"`;
    return { pattern: this.define(element("pattern", size, image)) };
  }

  drawImage(canvas, x, y, width = canvas.width, height = canvas.height) {
    this.flush();
    const size = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.parts.push(`<image ${size} href="${canvas.toDataURL()}"/>`);
  }

  // Pixels as boxes of one colour, a path for each colour; an image where they are too many.
  putImageData(image, left, top) {
    const found = boxesOf(image);
    if (found) {
      this.flush();
      for (const [color, boxes] of found) {
        const fill = css([color & 255, (color >> 8) & 255, (color >> 16) & 255]);
        const path = boxes.map(([x, y, w, h]) => `M${x + left} ${y + top}h${w}v${h}h${-w}z`).join("");
        this.parts.push(`<path ${this.paint("fill", fill)} shape-rendering="crispEdges" d="${path}"/>`);
      }
      return;
    }
    const sheet = document.createElement("canvas");
    sheet.width = image.width;
    sheet.height = image.height;
    sheet.getContext("2d").putImageData(image, 0, 0);
    this.drawImage(sheet, left, top);
  }
}

// An opaque image as boxes by colour; null if they are too many.
function boxesOf(image) {
  const { width, height } = image, pixels = new Uint32Array(image.data.buffer);
  const found = new Map();
  let open = new Map(), count = 0;
  const close = ([x, y, w, h, color]) => {
    if (!found.has(color)) found.set(color, []);
    found.get(color).push([x, y, w, h]);
    count += 1;
  };
  for (let y = 0; y < height && count <= MOST_BOXES; y++) {
    const here = new Map();
    for (let x = 0; x < width;) {
      const color = pixels[y * width + x], from = x;
      while (x < width && pixels[y * width + x] === color) x += 1;
      const above = open.get(from);
      if (above && above[2] === x - from && above[4] === color) {
        above[3] += 1;
        here.set(from, above);
        open.delete(from);
      } else here.set(from, [from, y, x - from, 1, color]);
    }
    for (const box of open.values()) close(box);
    open = here;
  }
  for (const box of open.values()) close(box);
  return count > MOST_BOXES ? null : found;
}
