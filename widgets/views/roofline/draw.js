// The roofline: what bounds each kind of work, how close it comes, and what that costs.

import { make } from "../../page/nodes.js";
import { grouped, three, worded } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { EDGE, Plane, ridges } from "./plane.js";
import { Points, drawCalls, drawGap, drawMark } from "./points.js";
import { LossTable, ROW, TOP } from "./table.js";

// pixels: the table's width, below which width it goes under the plot
const TABLE = 440;
const NARROW = 800;
const KINDS = [[1, "prefill"], [2, "decode"], [3, "training"], [0, "other work"]];

function render({ model, el }) {
  const card = new Card(el, model, "roofline", "What bounds this work, and how close is it?");
  const area = make("div", "", card.body), plot = make("div", "", area), list = make("div", "", area);
  const plane = new Plane(), points = new Points(), table = new LossTable();
  let lit = "", wholes = false, all = false, parts = null;
  const legend = make("div", "pw-legend", card.tools);
  const roofs = () => mergedRoofs(card.frame.roofs.filter((roof) => all || roof.shown));
  const marks = () => card.frame.marks.filter((mark) => mark.ghost || !card.frame.both || mark.part !== wholes);
  const litMark = () => card.frame.marks.find((mark) => mark.place === lit) || null;
  const faded = (mark) => {
    const { chosen } = card;
    return chosen !== "" && mark.lane !== chosen && card.frame.marks.some((m) => m.lane === chosen);
  };
  const light = (mark, event) => {
    lit = mark ? mark.place : "";
    card.hint(mark ? mark.words : null, event);
    card.schedule();
  };
  const ridge = (x, y) => ridges(roofs().filter((roof) => roof.own))
    .find((r) => Math.hypot(plane.x(r.x) - x, plane.y(r.y) - y) < 6);
  card.choice(["All roofs"], -1, (which) => { all = which === 0; });
  card.surface(plot, (ctx, width, height) => {
    const shown = marks();
    plane.fit(card.frame, [...shown, ...card.frame.ghosts || []], roofs(), width, height);
    points.place(plane, shown);
    plane.draw(ctx, card.colors, roofs(), points.placed);
    ctx.save();
    ctx.beginPath();
    ctx.rect(plane.left, plane.top - 8, plane.right - plane.left + EDGE.right, plane.bottom - plane.top + 8);
    ctx.clip();
    const mark = litMark();
    if (mark) drawGap(ctx, card.colors, plane, mark);
    points.draw(ctx, card.colors, plane, card.frame, mark, faded);
    ctx.restore();
  }, {
    pointermove(x, y, event) {
      const mark = points.at(x, y), corner = mark ? null : ridge(x, y);
      light(mark, event);
      if (corner) card.hint(ridgeWords(corner), event);
    },
    pointerleave(x, y, event) { light(null, event); },
    click(x, y) {
      const mark = points.at(x, y);
      card.set("chosen", mark && card.chosen !== mark.lane ? mark.lane : "");
    },
  });
  const isLong = () => table.rows.length * ROW + TOP > list.clientHeight;
  card.surface(list, (ctx, width, height) => {
    table.draw(ctx, card, marks(), width, height, litMark());
  }, {
    pointermove(x, y, event) { light(table.at(y), event); },
    pointerleave(x, y, event) { light(null, event); },
    wheelDoes: () => (isLong() ? "scrolls the table" : ""),
    wheel(x, y, event) {
      if (!isLong()) return false;
      table.first += Math.sign(event.deltaY);
      card.schedule();
      return true;
    },
  });
  const layout = new ResizeObserver(() => {
    const narrow = area.clientWidth < NARROW;
    area.style.cssText = `display:flex;height:100%;gap:${narrow ? 8 : 18}px;flex-direction:${narrow ? "column" : "row"}`;
    plot.style.flex = narrow ? "3 1 0" : "1 1 0";
    list.style.flex = narrow ? "2 1 0" : `0 0 ${Math.min(TABLE, area.clientWidth * 0.45)}px`;
  });
  area.style.height = "100%";
  layout.observe(area);
  card.onTheme = () => { if (card.frame) rooflineLegend(card, legend); };
  card.onFrame = (frame) => {
    points.follow(frame);
    if (frame.both && !parts) {
      parts = card.choice(["Operations", "Whole steps"], 0, (which) => {
        wholes = which === 1;
        card.showFigures(wholes ? card.frame.figures_whole : card.frame.figures);
        card.lead(wholes ? card.frame.lead_whole : card.frame.lead);
      });
    }
    if (parts) parts.style.display = frame.both ? "" : "none";
    if (wholes && frame.both) card.showFigures(frame.figures_whole);
    card.lead(wholes && frame.both ? frame.lead_whole : frame.lead);
    rooflineLegend(card, legend);
    const shown = frame.marks.length < frame.of ? [`showing ${grouped(frame.marks.length)} of ${grouped(frame.of)} points`] : [];
    card.say([...shown, frame.note].filter(Boolean).join(" · "));
  };
  return () => {
    layout.disconnect();
    card.close();
  };
}

// Roofs of one device at the same height are one line with all their names.
function mergedRoofs(roofs) {
  const found = new Map();
  for (const roof of roofs) {
    const key = `${roof.device} ${roof.kind} ${roof.value} ${roof.grade}`, same = found.get(key);
    found.set(key, same ? { ...same, name: `${same.name}, ${roof.name}` } : roof);
  }
  return [...found.values()];
}

function ridgeWords({ x, y, slope, flat }) {
  return [
    `Ridge at ${three(x)} FLOP/B`,
    `${slope.name} meets ${flat.name}, ${worded(y, "FLOP/s")}`,
    "left of it memory binds, right of it arithmetic",
  ];
}

// The shapes on the plot, and what hollow ones and small dots mean.
function rooflineLegend(card, legend) {
  const { frame, colors } = card;
  const phases = new Set(frame.marks.map((mark) => mark.phase));
  const modelled = frame.marks.find((mark) => mark.modelled), ghosts = (frame.ghosts || []).length > 0;
  const calls = frame.recent_x.length > 0;
  const key = JSON.stringify([colors, [...phases], modelled && modelled.phase, ghosts, calls]);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const item = (text, mark) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(text);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    if (mark) drawMark(ctx, colors, mark, 7, 7, 4.6);
    else drawCalls(ctx, colors, [[5, 3], [6, 7], [9, 5], [8, 11]]);
  };
  const sample = (phase) => frame.marks.find((mark) => mark.phase === phase);
  for (const [phase, name] of KINDS) {
    const said = phase || phases.size > 1 ? name : "operation";
    if (phases.has(phase)) item(said, { ...sample(phase), modelled: false, ghost: false });
  }
  if (modelled) item("modelled", { phase: modelled.phase, hue: 0, modelled: true });
  if (ghosts) item("the other run", { phase: 1, hue: 0, ghost: true });
  if (calls) item("single calls", null);
  if (frame.marks.length) make("span", "", legend, "area: share of the time");
}

export default { render };
