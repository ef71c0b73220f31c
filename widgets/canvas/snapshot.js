// What a view shows, title and figures included, as one picture.

import { css } from "./colors.js";
import { make } from "../page/nodes.js";
import { SvgContext, element, escaped, short } from "./svg_context.js";
import { fit } from "./text.js";

const TEXTS = ".pw-title,.pw-lead,.pw-chip,.pw-label,.pw-value,.pw-legend span,.pw-said,.pw-text";

export function savePicture(card) {
  picture(card, 2).toBlob((blob) => saveFile(blob, `${card.name}.png`));
}

export function saveDrawing(card) {
  saveFile(new Blob([svgOf(card)], { type: "image/svg+xml" }), `${card.name}.svg`);
}

export function saveFile(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The view as an SVG document that needs nothing else.
function svgOf(card) {
  const box = card.root.getBoundingClientRect(), { colors } = card;
  const size = `width="${Math.ceil(box.width)}" height="${Math.ceil(box.height)}"`;
  const parts = card.surfaces.map((surface, i) => {
    const { width, height } = surface, at = surface.canvas.getBoundingClientRect();
    if (!at.width) return "";
    const ctx = new SvgContext(width, height, `s${i}`);
    surface.drawOn(ctx, width, height, 1);
    const place = `x="${short(at.left - box.left)}" y="${short(at.top - box.top)}" width="${width}" height="${height}"`;
    return element("svg", place, ctx);
  });
  card.schedule(); // views remember how they were last drawn: as on the screen again
  const over = new SvgContext(box.width, box.height, "over");
  for (const node of card.root.querySelectorAll(".pw-legend canvas")) {
    const at = node.getBoundingClientRect();
    over.drawImage(node, at.left - box.left, at.top - box.top, at.width, at.height);
  }
  over.textBaseline = "top";
  for (const node of card.root.querySelectorAll(TEXTS)) drawText(over, card, node, box);
  const inner = element("title", "", escaped(card.title.firstChild.textContent))
    + `<rect width="100%" height="100%" fill="${css(colors.paper)}"/>${parts.join("")}${over}`;
  const facts = `xmlns="http://www.w3.org/2000/svg" ${size} font-family="${escaped(colors.font)}"`;
  return element("svg", facts, inner);
}

function picture(card, ratio) {
  const box = card.root.getBoundingClientRect();
  const sheet = document.createElement("canvas");
  sheet.width = box.width * ratio;
  sheet.height = box.height * ratio;
  const ctx = sheet.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.fillStyle = css(card.colors.paper);
  ctx.fillRect(0, 0, box.width, box.height);
  for (const surface of card.surfaces) surface.paint(ratio); // as sharp as the sheet
  for (const node of card.root.querySelectorAll("canvas")) {
    const at = node.getBoundingClientRect();
    ctx.drawImage(node, at.left - box.left, at.top - box.top, at.width, at.height);
  }
  for (const surface of card.surfaces) surface.paint();
  ctx.textBaseline = "top";
  for (const node of card.root.querySelectorAll(TEXTS)) drawText(ctx, card, node, box);
  return sheet;
}

// One line of the page's text where it stands; what is scrolled out of its list is left out.
function drawText(ctx, card, node, box) {
  const at = node.getBoundingClientRect(), style = getComputedStyle(node);
  const list = (node.closest("ol") || card.root).getBoundingClientRect();
  if (!at.width || at.top < list.top - 1 || at.bottom > list.bottom + 1) return;
  ctx.fillStyle = style.color;
  ctx.font = `${style.fontWeight} ${style.fontSize} ${card.colors.font}`;
  const swatch = node.querySelector("canvas") ? 20 : 0;
  const own = [...node.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE);
  const text = fit(ctx, own.map((child) => child.textContent).join(""), at.width - swatch + 2);
  const right = style.textAlign === "right";
  ctx.textAlign = right ? "right" : "left";
  const x = (right ? at.right : at.left + parseFloat(style.paddingLeft) + swatch) - box.left;
  ctx.fillText(text, x, at.top - box.top + (at.height - parseFloat(style.fontSize)) / 2);
}
