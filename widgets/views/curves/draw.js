// Curves: small multiples of lines over a quantity that was swept.

import { NAME_LINE } from "../../canvas/axes.js";
import { css } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { clamp, grouped, three, worded } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { CurvePanel, PANEL_FOOT, PANEL_HEAD, SECOND_LINE, pointMark } from "./panel.js";

// pixels: the narrowest panel, the gap between panels
const LEAST = 250;
const BETWEEN = 26;
const AROUND = 90; // pixels of a view that are not panels
const MANY = 12; // names in a legend
const DASHES = [[], [2, 3], [9, 4], [9, 3, 2, 3]]; // of bounds that the legend names

function render({ model, el }) {
  const card = new Card(el, model, "curves", "How does it grow, and where does it bend?");
  const area = make("div", "", card.body), legend = make("div", "pw-legend whole", card.tools);
  area.style.height = "100%";
  card.bases = new Set();
  card.onFrame = (frame) => card.rename(frame.question);
  let panels = [], lit = null, pinned = "";
  card.onUnpinned(() => { pinned = ""; });
  card.surface(area, (ctx, width, height) => {
    panels = card.frame.panels.map((spec) => new CurvePanel(card, spec));
    card.bases = new Set(card.frame.panels.flatMap((p) => p.series.map((s) => s.base)));
    drawCurves(ctx, card, panels, width, height, legend);
    if (lit) drawLit(ctx, card, panels[lit.panel], lit);
  }, {
    pointermove(x, y, event) {
      lit = pointAt(panels, x, y);
      card.set("chosen", lit ? panels[lit.panel].spec.series[lit.place].base : pinned);
      card.hint(lit ? curveWords(panels[lit.panel], lit) : null, event);
      card.schedule();
    },
    pointerleave(x, y, event) {
      lit = null;
      card.set("chosen", pinned);
      card.hint(null, event);
      card.schedule();
    },
    click() {
      const base = lit ? panels[lit.panel].spec.series[lit.place].base : "";
      pinned = pinned === base ? "" : base;
      card.set("chosen", pinned);
    },
  });
  return () => card.close();
}

// As many columns as fit, rows filled evenly; names at the ends of lines where there is room.
function drawCurves(ctx, card, panels, width, height, legend) {
  const most = clamp(Math.floor((width + BETWEEN) / (LEAST + BETWEEN)), 1, Math.max(1, panels.length));
  const rows = Math.max(Math.ceil(panels.length / most), panels.length > 3 && most > 2 ? 2 : 1);
  const columns = Math.ceil(panels.length / rows);
  const wide = (width - BETWEEN * (columns - 1)) / columns, high = (height - 10 * (rows - 1)) / rows;
  const drawn = panels.map((panel) => panel.series.filter((s) => !s.bound));
  ctx.font = `600 12px ${card.colors.font}`; // as wide as names are when lit
  const widest = drawn.map((list) => Math.max(0, ...list.map((s) => ctx.measureText(s.name).width)));
  ctx.font = `12px ${card.colors.font}`;
  const lines = Math.floor((high - PANEL_HEAD - PANEL_FOOT) / NAME_LINE);
  const alone = drawn.every((series) => series.length < 2) && new Set(drawn.flat().map((s) => s.name)).size < 2;
  // Once there is a legend it stays: without it the lines would be higher and might ask for it again.
  const key = [width, ...drawn.map((s) => s.length)].join();
  const hasLegend = !alone && (legend.dataset.needed === key || Math.max(0, ...widest) > wide * 0.32
    || drawn.some((s) => s.length > lines));
  legend.dataset.needed = hasLegend ? key : "";
  const bounds = [...new Set(panels.flatMap((panel) => panel.series.filter((s) => s.bound).map((s) => s.base)))];
  for (const series of panels.flatMap((panel) => panel.series)) {
    series.dash = series.bound ? DASHES[bounds.indexOf(series.base) % DASHES.length] : [];
  }
  const head = PANEL_HEAD + (panels.some((panel) => panel.needsTwoLines(ctx, wide)) ? SECOND_LINE : 0);
  panels.forEach((panel, i) => {
    const x = (i % columns) * (wide + BETWEEN), y = Math.floor(i / columns) * (high + 10);
    panel.place(ctx, x, y, wide, high, hasLegend || alone ? 6 : Math.ceil(widest[i]) + 12, head);
    panel.draw(ctx);
    panel.names(ctx, hasLegend || alone);
  });
  curvesLegend(card, legend, panels, hasLegend);
  const tells = hasLegend || panels.some((panel) => panel.listed);
  card.height.wish(AROUND + rows * (rows > 1 ? 230 : 330) + (tells ? 60 : 0));
  const said = curvesSaid(card.frame, panels);
  card.say(said);
  card.tools.style.display = said || tells ? "" : "none";
}

function curvesSaid(frame, panels) {
  const parts = [], skipped = panels.reduce((count, panel) => count + panel.skipped, 0);
  if (frame.x.length < frame.points) parts.push(`showing ${grouped(frame.x.length)} of ${grouped(frame.points)} points`);
  if (skipped) parts.push(`${grouped(skipped)} points at or below 0 are not on the log axis`);
  if (frame.wrong.length) parts.push(`no curve: ${frame.wrong.join(", ")}`);
  return parts.join(" · ");
}

// A swatch for each line, where names do not fit beside their lines, and for bounds of long names.
function curvesLegend(card, legend, panels, shown) {
  const found = new Map();
  for (const panel of panels) {
    for (const series of panel.series) {
      if (series.bound ? panel.listed : shown) found.set(series.bound ? series.base : series.name, series);
    }
  }
  legend.classList.toggle("many", found.size > MANY); // three rows that scroll, or curves begin too low
  const key = JSON.stringify([card.colors, [...found.keys()]]);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  for (const [name, series] of found) {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(name);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d"), hues = card.colors.hues;
    ctx.scale(2, 2);
    ctx.strokeStyle = css(series.bound ? card.colors.faint : hues[series.hue % hues.length]);
    ctx.lineWidth = series.bound || series.hue >= hues.length ? 1 : 2;
    ctx.setLineDash(series.bound ? series.dash : series.modelled ? [4, 3] : []);
    ctx.beginPath();
    ctx.moveTo(0, 7);
    ctx.lineTo(14, 7);
    ctx.stroke();
    if (series.bound) continue;
    ctx.setLineDash([]);
    ctx.lineWidth = 1.5;
    ctx.fillStyle = css(series.modelled || series.hue >= hues.length ? card.colors.paper : hues[series.hue % hues.length]);
    pointMark(ctx, 7, 7, series.hue);
    ctx.fill();
    ctx.stroke();
  }
}

function pointAt(panels, x, y) {
  for (const [panel, { box, left, right, top, bottom }] of panels.entries()) {
    if (x < left - 8 || x > right + 8 || y < top - 8 || y > bottom + 8 || !box) continue;
    const found = panels[panel].nearest(x, y);
    if (!found || found.away > 140) return null;
    return { panel, place: panels[panel].series.indexOf(found.series), index: found.index };
  }
  return null;
}

// A hairline through the point under the pointer, and the point itself.
function drawLit(ctx, card, panel, { place, index }) {
  const series = panel?.series[place];
  if (!series || index >= series.count) return;
  const x = panel.x.at(series.xs[index]), y = panel.y.at(series.ys[index]);
  ctx.fillStyle = css(card.colors.faint, 0.6);
  ctx.fillRect(Math.round(x), panel.top, 1, panel.bottom - panel.top);
  ctx.beginPath();
  ctx.arc(x, y, 5, 0, 7);
  ctx.fillStyle = css(panel.color(series));
  ctx.fill();
  ctx.lineWidth = 2;
  ctx.strokeStyle = css(card.colors.paper);
  ctx.stroke();
}

// What the tip says: the line, its point, and what the others are at the same place.
function curveWords(panel, { place, index }) {
  const series = panel.series[place], x = series.xs[index];
  const said = (value) => worded(value, panel.yLabel.unit);
  const lines = [series.name, `${panel.xLabel.text || "x"}: ${panel.x.text(x, panel.doubling)}`];
  const interval = Number.isFinite(series.lows[index]) && Number.isFinite(series.highs[index])
    ? `, ${said(series.lows[index])} to ${said(series.highs[index])}` : "";
  lines.push(`${panel.yLabel.text || panel.spec.name}: ${said(series.ys[index])}${interval}`);
  for (const other of panel.series) {
    if (other === series || lines.length > 10) continue;
    const at = other.bound && other.count === 1 ? 0 : other.xs.indexOf(x);
    if (at < 0 || !Number.isFinite(other.ys[at])) continue;
    const times = series.ys[index] > 0 && other.ys[at] > 0 ? ` (${three(other.ys[at] / series.ys[index])}×)` : "";
    lines.push(`${other.name}: ${said(other.ys[at])}${times}`);
  }
  return lines;
}

export default { render };
