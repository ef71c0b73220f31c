// The cache view: cells on the left, icicle and decisions on the right, levels over time below.

import { css, mix, pixel, textOn } from "../../canvas/colors.js";
import { NOBODY } from "../../canvas/frames.js";
import { make } from "../../page/nodes.js";
import { clamp, countBelow, grouped, three } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { Cells, shades } from "./cells.js";
import { Levels, showDecisions } from "./levels.js";
import { pageWords, rowWords, stateWords } from "./marks.js";
import { CACHED, FREE, USED } from "./states.js";
import { Icicle } from "./tree.js";

const LAYOUT = `
.pw-map{display:grid;height:100%;gap:12px 24px;grid-template-columns:minmax(0,1.65fr) minmax(0,1fr);
 grid-template-rows:minmax(0,1.35fr) minmax(0,1fr) 96px;
 grid-template-areas:"cells tree" "cells told" "levels levels"}
.pw-map.narrow{grid-template-columns:minmax(0,1fr);
 grid-template-rows:minmax(0,1.7fr) minmax(0,1.1fr) minmax(0,.6fr) 96px;
 grid-template-areas:"cells" "tree" "told" "levels"}
.pw-cells{grid-area:cells}.pw-tree{grid-area:tree}.pw-levels{grid-area:levels}
.pw-told{grid-area:told;display:flex;flex-direction:column;min-height:0}
.pw-told h3{font-size:12px;line-height:16px;font-weight:600;margin:0 0 6px}
.pw-told ol{list-style:none;margin:0;padding:0;overflow-y:auto;flex:1;font-size:12px;line-height:17px}
.pw-told li{display:flex;gap:12px;padding:2px 0;color:var(--ink)}
.pw-told li.pw-text{color:var(--faint)}
.pw-when{flex:0 0 48px;text-align:right;color:var(--faint)}`;

function render({ model, el }) {
  const card = new Card(el, model, "page-map", "Where does every key and value live, and who uses it?");
  make("style", "", el, LAYOUT);
  const map = make("div", "pw-map", card.body);
  const areas = Object.fromEntries(["cells", "tree", "levels"].map((n) => [n, make("div", `pw-${n}`, map)]));
  const told = make("div", "pw-told", map);
  make("h3", "pw-text", told, "Decisions, newest first");
  const list = make("ol", "", told);
  const cells = new Cells(card), icicle = new Icicle(card), levels = new Levels(card);
  const fitted = new ResizeObserver(() => map.classList.toggle("narrow", card.body.clientWidth < 640));
  fitted.observe(card.body);

  card.choice(["By memory", "By owner"], 0, (which) => {
    cells.arrangement = which ? "owner" : "memory";
  });
  const attention = card.choice(["Attention mass"], -1, (which) => { cells.byMass = which === 0; });
  attention.title = "Shade each page by the attention its keys received in the latest sample";
  const heads = headChoice(card);
  const legend = make("div", "pw-legend", card.tools);
  card.onTheme = () => {
    cells.pages = new Set(card.model.get("options").lit || []); // another view chose them
    drawLegend(card, legend, cells);
  };
  card.onTheme();
  card.onFrame = (frame) => {
    attention.style.display = frame.mass ? "" : "none";
    heads.offer(frame);
    showDecisions(list, frame.decisions, frame.time[frame.time.length - 1]);
  };

  wireCells(card, areas.cells, cells, icicle, legend);
  wireTree(card, areas.tree, cells, icicle);
  wireLevels(card, areas.levels, levels);
  return () => {
    fitted.disconnect();
    card.close();
  };
}

function wireCells(card, area, cells, icicle, legend) {
  let pinned = "", over = "";
  card.onUnpinned(() => { pinned = ""; });
  const choose = (owner) => { if (owner !== over) card.set("chosen", (over = owner) || pinned); };
  const ownerAt = (spot) => {
    const frame = card.frame;
    if (!spot) return "";
    const number = spot.state !== undefined ? frame.states_owner[spot.state]
      : spot.row !== undefined ? frame.row_owner[spot.row]
      : spot.page !== undefined ? frame.owner[spot.page] : frame.host_owner[spot.host];
    return number === NOBODY ? "" : frame.owners[number];
  };
  const leave = () => {
    cells.hovered = null;
    icicle.hovered = -1;
    card.hint(null);
    choose("");
    card.schedule();
  };
  const paint = (ctx, width, height, ratio) => {
    cells.draw(ctx, width, height, ratio);
    drawLegend(card, legend, cells);
    const { layout } = cells, pages = card.frame.state.length;
    const few = layout.kind === "owner" && layout.most > 0;
    const rest = layout.kind === "memory" && layout.pages < pages;
    card.say(few ? `showing ${layout.visible.length} of ${layout.rows.length} requests, scroll for more`
      : rest ? `showing ${grouped(layout.pages)} of ${grouped(pages)} pages: the rest was never used`
      : `showing all ${grouped(layout.kind === "owner" ? layout.rows.length : pages)} ` +
        `${layout.kind === "owner" ? "requests" : "pages"}`);
  };
  card.surface(area, paint, {
    pointermove: (x, y, event) => {
      const frame = card.frame, spot = frame && cells.at(x, y);
      if (!spot) return leave();
      cells.hovered = spot.page;
      icicle.hovered = spot.page === undefined ? -1 : blockOf(frame, spot.page);
      const words = spot.page !== undefined ? pageWords(frame, spot.page, cells.byMass)
        : spot.state !== undefined ? stateWords(frame, spot.state)
        : spot.host !== undefined ? [`Host page ${spot.host}`, ownerAt({ host: spot.host })
          ? `holds a swapped-out page of ${ownerAt({ host: spot.host })}` : "empty"]
          : rowWords(frame, spot.row);
      card.hint(words, event);
      choose(ownerAt(spot));
      return card.schedule();
    },
    pointerleave: leave,
    click: (x, y) => {
      const spot = cells.at(x, y), owner = ownerAt(spot);
      card.set("window", { ...card.model.get("window"), page: spot?.page ?? -1 });
      pinned = pinned === owner ? "" : owner;
      card.set("chosen", pinned);
    },
    wheelDoes: () => (cells.layout?.kind === "owner" && cells.layout.most ? "scrolls the rows" : ""),
    wheel: (x, y, event) => {
      if (cells.layout?.kind !== "owner" || !cells.layout.most) return false;
      const { first, most } = cells.layout;
      cells.scroll = clamp(first + Math.sign(event.deltaY) * 3, 0, most);
      card.schedule();
      return cells.scroll !== first;
    },
  });
}

function blockOf(frame, page) {
  const place = frame.tree_pages.indexOf(page);
  return place < 0 ? -1 : countBelow(frame.tree_offset, place + 1) - 1;
}

function wireTree(card, area, cells, icicle) {
  card.surface(area, (ctx, width, height) => icicle.draw(ctx, width, height), {
    pointermove: (x, y, event) => {
      icicle.hovered = icicle.at(x, y);
      cells.lit = new Set(icicle.hovered < 0 ? [] : icicle.pages(icicle.hovered));
      card.hint(icicle.hovered < 0 ? null : icicle.words(icicle.hovered), event);
      card.schedule();
    },
    pointerleave: () => {
      icicle.hovered = -1;
      cells.lit = new Set();
      card.hint(null);
      card.schedule();
    },
  });
}

function wireLevels(card, area, levels) {
  let dragging = false;
  const seek = (x) => {
    const time = levels.moment(x);
    if (time !== null) card.set("seek", time);
  };
  card.surface(area, (ctx, width, height) => levels.draw(ctx, width, height), {
    pointerdown: (x, y, event) => {
      dragging = true;
      event.target.setPointerCapture(event.pointerId);
      seek(x);
    },
    pointerup: () => { dragging = false; },
    pointermove: (x, y, event) => {
      if (dragging) seek(x);
      card.hint(card.frame && levels.words(x), event);
    },
    pointerleave: () => card.hint(null),
  });
}

// Which layer and head the attention mass is of; only where the sample has more than one.
function headChoice(card) {
  const picks = ["layer", "head"].map((name) => {
    const label = make("label", "", card.menu, `Attention of ${name}`);
    const select = make("select", "", label);
    select.onchange = () => card.set("window", {
      layer: Number(picks[0].select.value), head: Number(picks[1].select.value) });
    return { name, label, select };
  });
  return {
    offer(frame) {
      for (const { name, label, select } of picks) {
        const count = frame[`${name}s`] || 1;
        label.style.display = count > 1 ? "" : "none";
        if (select.options.length === count + 1) continue;
        select.replaceChildren(new Option("all", -1));
        for (let i = 0; i < count; i++) select.add(new Option(i, i));
      }
    },
  };
}

// Swatches drawn by the same code as the cells, so that the legend cannot lie.
function drawLegend(card, legend, cells) {
  const frame = card.frame;
  const key = JSON.stringify([card.colors, cells.byMass, !!frame?.host_owner.length, frame?.mass_share]);
  if (!frame || legend.dataset.key === key) return;
  legend.dataset.key = key;
  const bright = [shades(card.colors, card.colors.hues[0], false)];
  const swatch = { width: 14, unit: 1, bright, dimmed: bright, mine: new Set() };
  const painter = Object.assign(Object.create(Cells.prototype), cells, swatch, { byMass: false });
  const one = { owner: [0], page_size: 1, owner_texture: [0], mass: null };
  const item = (text, paint, letter = "") => {
    const canvas = make("canvas", "", null);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    canvas.width = canvas.height = 14;
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(14, 14);
    painter.pixels = new Uint32Array(image.data.buffer);
    paint();
    ctx.putImageData(image, 0, 0);
    ctx.fillStyle = css(textOn(bright[0].color));
    ctx.font = `600 12px ${card.colors.font}`;
    ctx.textAlign = "center";
    ctx.fillText(letter, 7, 11);
    const span = make("span", "", legend);
    span.append(canvas, text);
  };
  const page = (facts) => () => painter.page({ ...one, refs: [1], glow: [0], fill: [1], state: [USED], ...facts }, 0, 0, 0, 14, 14);
  painter.free = pixel(mix(card.colors.paper, card.colors.idle, card.colors.dark ? 0.22 : 0.3));
  painter.paper = pixel(card.colors.paper);
  painter.glow = pixel(card.colors.ink);
  legend.replaceChildren();
  if (cells.byMass) {
    painter.byMass = true;
    item("little attention", page({ mass: [10] }));
    item("much", page({ mass: [255] }));
    if (frame.mass_share) make("span", "", legend, `sampling costs ${three(frame.mass_share * 100)} % of the time`);
    return;
  }
  item("used", page({}));
  item("shared", page({ refs: [2] }), "2");
  item("written now", page({ glow: [1] }));
  item("part filled", page({ fill: [0.5] }));
  item("cached, fading with age", page({ state: [CACHED], age: [2] }));
  if (frame.host_owner.length) item("swapped out", () => painter.hostPage(0, 0, 0, 0, 14, 14));
  item("free", page({ state: [FREE] }));
}

export default { render };
