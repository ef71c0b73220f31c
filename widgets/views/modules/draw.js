// Modules: a grid for each text, layers downwards, tokens to the right; dark where the big feed-forward ran.

import { make } from "../../page/nodes.js";
import { css, mix } from "../../canvas/colors.js";
import { Card } from "../../canvas/card.js";
import { fit } from "../../canvas/text.js";
import { grouped } from "../../canvas/numbers.js";

// pixels
const TITLE = 22;
const LABEL = 56;
const SHARE = 46;
const MOST = 20;
const LEAST = 7;
const WORD = 16;
const GAP = 10;
const NONE = 0;
const BIG = 2;
const WORDS = ["left out", "the small one", "the big one"];

// Where each text's grid stands, one beneath the other; its last tokens where all have no room.
function places(frame, width, height) {
  const room = width - LABEL - SHARE, longest = Math.max(1, ...frame.tokens);
  const cell = Math.max(LEAST, Math.min(MOST, Math.floor(room / longest)));
  const across = Math.max(1, Math.floor(room / cell)), grids = [];
  let from = 0, word = 0, y = TITLE;
  frame.texts.forEach((name, text) => {
    const layers = frame.layers[text], tokens = frame.tokens[text], tall = layers * cell + WORD + GAP + TITLE;
    const first = Math.max(0, tokens - across);
    if (y + layers * cell + WORD <= height) grids.push({ text, from, word, first, layers, tokens, cell, x: LABEL, y });
    from += layers * tokens;
    word += tokens;
    y += tall;
  });
  return grids;
}

function shadeOf(colors, hue, what) {
  return what === BIG ? mix(hue, colors.ink, 0.35) : what === NONE ? colors.paper : mix(colors.paper, hue, 0.3);
}

function paint(ctx, card, grid, lit) {
  const { frame, colors } = card, { cell } = grid, hue = colors.hues[frame.text_hue[grid.text]];
  const name = frame.texts[grid.text], dim = card.chosen && !name.startsWith(card.chosen);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = css(dim ? colors.faint : colors.ink);
  const cut = grid.first ? ` · from token ${grouped(grid.first + 1)} of ${grouped(grid.tokens)}` : "";
  ctx.fillText(name + cut, grid.x, grid.y - 11);
  for (let layer = 0; layer < grid.layers; layer++) {
    const y = grid.y + layer * cell;
    let big = 0;
    for (let at = 0; at < grid.tokens; at++) {
      const i = grid.from + at * grid.layers + layer, what = frame.taken[i];
      big += what === BIG;
      if (at < grid.first) continue;
      const x = grid.x + (at - grid.first) * cell;
      ctx.fillStyle = css(shadeOf(colors, hue, what), dim ? 0.4 : 1);
      ctx.fillRect(x, y, cell - 1, cell - 1);
      if (what === NONE) {
        ctx.strokeStyle = css(colors.line);
        ctx.lineWidth = 1;
        ctx.strokeRect(x + 0.5, y + 0.5, cell - 2, cell - 2);
      }
      if (i === lit) {
        ctx.strokeStyle = css(colors.ink);
        ctx.lineWidth = 2;
        ctx.strokeRect(x, y, cell - 1, cell - 1);
      }
    }
    if (cell < 12 && layer % 2) continue;
    ctx.fillStyle = css(colors.faint);
    ctx.textAlign = "right";
    ctx.fillText(layer ? String(layer + 1) : "layer 1", grid.x - 6, y + cell / 2);
    ctx.textAlign = "left";
    const shown = grid.tokens - grid.first;
    ctx.fillText(`${Math.round((100 * big) / grid.tokens)}%`, grid.x + shown * cell + 6, y + cell / 2);
  }
  if (cell < 10) return;
  ctx.textAlign = "center";
  ctx.fillStyle = css(dim ? colors.faint : colors.ink);
  for (let at = grid.first; at < grid.tokens; at++) {
    const word = frame.words[grid.word + at].replace("\n", "↵").replace(" ", "·");
    if (word) ctx.fillText(fit(ctx, word, cell), grid.x + (at - grid.first + 0.5) * cell, grid.y + grid.layers * cell + 8);
  }
  ctx.textAlign = "left";
}

function render({ model, el }) {
  const card = new Card(el, model, "modules", "Which tokens got the big feed-forward, and in which layers?");
  let grids = [], lit = -1, shown = -1;
  const area = make("div", "", card.body);
  area.style.height = "100%";
  const say = () => {
    const left = card.frame.left_out + card.frame.texts.length - grids.length;
    const rest = left ? ` · ${grouped(left)} texts not shown` : "";
    card.say(`layers downwards, tokens to the right; strong: the big one, faint: the small one, hollow: left out; on the right how many were big${rest}`);
  };
  const under = (x, y) => {
    for (const grid of grids) {
      const at = grid.first + Math.floor((x - grid.x) / grid.cell), layer = Math.floor((y - grid.y) / grid.cell);
      if (at >= grid.first && at < grid.tokens && layer >= 0 && layer < grid.layers) return { grid, at, layer };
    }
    return null;
  };
  const place = ({ grid, at, layer }) => grid.from + at * grid.layers + layer;
  const told = (hit) => {
    const { frame } = card, word = frame.words[hit.grid.word + hit.at];
    return [
      `${frame.texts[hit.grid.text]}, token ${hit.at + 1}${word ? ` ${JSON.stringify(word)}` : ""}`,
      `layer ${hit.layer + 1}: ${WORDS[frame.taken[place(hit)]]}`,
    ];
  };
  card.surface(area, (ctx, width, height) => {
    grids = places(card.frame, width, height);
    grids.forEach((grid) => paint(ctx, card, grid, lit));
    if (grids.length !== shown) {
      shown = grids.length;
      say();
    }
  }, {
    pointermove(x, y, event) {
      const hit = under(x, y), i = hit ? place(hit) : -1;
      card.hint(hit ? told(hit) : null, event);
      if (i !== lit) card.schedule();
      lit = i;
    },
    pointerleave(x, y, event) { lit = -1; card.hint(null, event); card.schedule(); },
    click(x, y) {
      const hit = under(x, y), name = hit ? card.frame.texts[hit.grid.text].replace(/ in hindsight$/, "") : "";
      card.set("chosen", name === card.chosen ? "" : name);
    },
  });
  card.onFrame = say;
  return () => card.close();
}

export default { render };
