// Frames: a strip of frames as they were shown; under each, small and struck, those thrown away for it.

import { make } from "../../page/nodes.js";
import { css, mix } from "../../canvas/colors.js";
import { Card } from "../../canvas/card.js";
import { grouped } from "../../canvas/numbers.js";

// pixels
const MOST = 88;
const LEAST = 32;
const GAP = 12;
const TITLE = 18;
const GIVEN = 0;
const KEPT = 2;
const REFUSED = 3;
const ARROWS = { left: "←", stay: "·", right: "→" };
const WORDS = ["given to begin with", "begun once its action was told", "begun for a guessed action, kept", "thrown away: another action came"];

// Where each tile stands: columns of a shown frame and what was refused for it, wrapped.
function places(frame, width, height) {
  const columns = [];
  let waiting = [];
  frame.state.forEach((state, i) => {
    if (state === REFUSED) { waiting.push(i); return; }
    columns.push({ shown: i, refused: waiting });
    waiting = [];
  });
  let side = MOST;
  const below = (s) => (columns.some((c) => c.refused.length) ? Math.floor(s * 0.42) + 4 : 0);
  const across = (s) => Math.max(1, Math.floor((width - GAP) / (s + GAP)));
  const tall = (s) => s + TITLE + GAP + below(s);
  while (side > LEAST && Math.ceil(columns.length / across(side)) * tall(side) > height - 8) side -= 2;
  const fit = Math.max(1, Math.floor((height - 8) / tall(side))) * across(side);
  const tiles = [], hidden = Math.max(0, columns.length - fit);
  columns.slice(hidden).forEach((column, at) => {
    const x = GAP + (at % across(side)) * (side + GAP), y = TITLE + Math.floor(at / across(side)) * tall(side);
    tiles.push({ i: column.shown, x, y, side });
    const mini = Math.floor(side * 0.42), step = Math.min(mini + 3, (side - mini) / Math.max(1, column.refused.length - 1));
    column.refused.forEach((i, k) => tiles.push({ i, x: x + k * step, y: y + side + 4, side: mini }));
  });
  return { tiles, hidden };
}

function paint(ctx, card, tile, lit) {
  const { frame, colors } = card, { i, x, y, side } = tile, state = frame.state[i], hue = colors.hues[0];
  const cell = side / frame.columns, refused = state === REFUSED, from = i * frame.rows * frame.columns;
  ctx.fillStyle = css(state === KEPT ? mix(colors.paper, hue, 0.22) : mix(colors.paper, colors.idle, 0.55));
  ctx.fillRect(x, y, side, side);
  for (let at = 0; at < frame.rows * frame.columns; at++) {
    const what = frame.cells[from + at];
    if (!what) continue;
    ctx.fillStyle = css(what === 2 ? (refused ? colors.faint : hue) : (refused ? colors.line : colors.ink));
    ctx.fillRect(x + (at % frame.columns) * cell, y + Math.floor(at / frame.columns) * cell, Math.ceil(cell), Math.ceil(cell));
  }
  ctx.lineWidth = frame.wrong[i] || i === lit ? 3 : 1;
  ctx.strokeStyle = css(frame.wrong[i] ? colors.wrong : i === lit ? colors.ink : state === KEPT ? hue : colors.line);
  ctx.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
  if (refused) {
    ctx.beginPath();
    ctx.moveTo(x + 2, y + side - 2);
    ctx.lineTo(x + side - 2, y + 2);
    ctx.strokeStyle = css(colors.faint);
    ctx.lineWidth = 1.5;
    ctx.stroke();
    return;
  }
  ctx.fillStyle = css(state === GIVEN ? colors.faint : colors.ink);
  ctx.textBaseline = "bottom";
  ctx.textAlign = "left";
  ctx.fillText(String(frame.number[i]), x, y - 2);
  ctx.textAlign = "right";
  ctx.fillText(ARROWS[frame.action[i]] ?? frame.action[i], x + side, y - 2);
  ctx.textAlign = "left";
}

function told(frame, i) {
  const state = frame.state[i];
  const steps = `${frame.step[i]} ${frame.step[i] === 1 ? "pass" : "passes"}`;
  return [
    `frame ${frame.number[i]}, action ${frame.action[i]}`,
    WORDS[state],
    state === GIVEN ? "" : state === REFUSED ? `after ${frame.step[i]} of its steps` : `${steps} from the frame before`,
    frame.wrong[i] ? "the game does not allow it after the frame before" : "",
  ].filter(Boolean);
}

// What the looks of a tile mean, each beside a small one.
function framesLegend(card, legend) {
  const { colors } = card, hue = colors.hues[0], grey = css(mix(colors.paper, colors.idle, 0.55));
  const key = JSON.stringify(colors);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const looks = [["made ahead", css(mix(colors.paper, hue, 0.22)), css(hue), 1], ["made once told", grey, css(colors.line), 1],
    ["thrown away", grey, css(colors.faint), 1], ["not allowed", grey, css(colors.wrong), 3]];
  looks.forEach(([words, fill, rim, thick], at) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(words);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    ctx.fillStyle = fill;
    ctx.fillRect(1, 1, 12, 12);
    [ctx.strokeStyle, ctx.lineWidth] = [rim, thick];
    ctx.strokeRect(1.5, 1.5, 11, 11);
    if (at !== 2) return;
    ctx.beginPath();
    ctx.moveTo(2, 12);
    ctx.lineTo(12, 2);
    ctx.stroke();
  });
}

function render({ model, el }) {
  const card = new Card(el, model, "frames", "Which frames were made ahead, and which thrown away?");
  const legend = make("div", "pw-legend", card.tools);
  card.onTheme = card.onFrame = () => framesLegend(card, legend);
  let laid = { tiles: [], hidden: 0 }, lit = -1;
  const area = make("div", "", card.body);
  area.style.height = "100%";
  const say = () => {
    const left = card.frame.left_out + laid.hidden;
    card.say(left ? `${grouped(left)} earlier not shown` : "");
  };
  card.surface(area, (ctx, width, height) => {
    laid = places(card.frame, width, height);
    laid.tiles.forEach((tile) => paint(ctx, card, tile, lit));
    say();
  }, {
    pointermove(x, y, event) {
      const hit = laid.tiles.find((t) => x >= t.x && x < t.x + t.side && y >= t.y && y < t.y + t.side);
      card.hint(hit ? told(card.frame, hit.i) : null, event);
      if ((hit ? hit.i : -1) !== lit) card.schedule();
      lit = hit ? hit.i : -1;
    },
    pointerleave(x, y, event) { lit = -1; card.hint(null, event); card.schedule(); },
  });
  return () => card.close();
}

export default { render };
