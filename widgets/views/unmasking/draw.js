// Unmasking: a grid for each text, steps downwards, positions to the right; a cell darkens once decided.

import { make } from "../../page/nodes.js";
import { css, mix } from "../../canvas/colors.js";
import { Card } from "../../canvas/card.js";
import { fit } from "../../canvas/text.js";
import { grouped } from "../../canvas/numbers.js";

// pixels
const TITLE = 34;
const LABEL = 44;
const CELL = 40;
const LEAST = 9;
const GAP = 22;

// Where each text's grid stands, as many side by side as there is room for.
function places(frame, width, height) {
  const many = frame.texts.length, widest = Math.max(1, ...frame.places), tallest = Math.max(1, ...frame.steps);
  let best = null;
  for (let columns = 1; columns <= many; columns++) {
    const rows = Math.ceil(many / columns);
    const cell = Math.min(CELL, ((width - GAP) / columns - LABEL - GAP) / widest,
      ((height - 8) / rows - TITLE - GAP) / tallest);
    if (!best || cell > best.cell) best = { columns, cell };
  }
  const cell = Math.max(LEAST, best ? best.cell : CELL), columns = best ? best.columns : 1;
  let from = 0;
  return Array.from({ length: many }, (_, i) => {
    const at = {
      text: i, from, cell, steps: frame.steps[i], places: frame.places[i],
      x: GAP / 2 + LABEL + (i % columns) * (LABEL + widest * cell + GAP),
      y: TITLE + Math.floor(i / columns) * (TITLE + tallest * cell + GAP),
    };
    from += at.steps * at.places;
    return at;
  });
}

function word(frame, i) { return frame.words[frame.token[i]] ?? String(frame.token[i]); }

function paint(ctx, card, grid, lit) {
  const { frame, colors } = card, { cell } = grid;
  const hue = colors.hues[frame.hue[grid.text]], name = frame.texts[grid.text];
  const dim = card.chosen && card.chosen !== name;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = css(dim ? colors.faint : colors.ink);
  ctx.fillText(fit(ctx, [name, frame.asked[grid.text]].filter(Boolean).join(" · "), Math.max(120, grid.places * cell + GAP)), grid.x, grid.y - 20);
  ctx.fillStyle = css(colors.faint);
  ctx.textAlign = "right";
  for (let step = 0; step < grid.steps; step++) {
    if (cell < 13 && step % 2) continue;
    ctx.fillText(step ? String(step + 1) : "step 1", grid.x - 6, grid.y + (step + 0.5) * cell);
  }
  ctx.textAlign = "center";
  for (let step = 0; step < grid.steps; step++) {
    for (let place = 0; place < grid.places; place++) {
      const i = grid.from + step * grid.places + place, stands = frame.token[i] !== frame.mask;
      const shade = !stands ? colors.idle : frame.decided[i] ? mix(hue, colors.ink, 0.3) : mix(colors.paper, hue, 0.3);
      ctx.fillStyle = css(shade, dim ? 0.4 : 1);
      const x = grid.x + place * cell, y = grid.y + step * cell;
      ctx.fillRect(x, y, cell - 1, cell - 1);
      if (stands && cell >= 13) {
        ctx.fillStyle = css(frame.decided[i] ? colors.paper : colors.ink);
        ctx.fillText(fit(ctx, word(frame, i), cell - 2), x + cell / 2, y + cell / 2);
      }
      if (i === lit) {
        ctx.strokeStyle = css(colors.ink);
        ctx.lineWidth = 2;
        ctx.strokeRect(x, y, cell - 1, cell - 1);
      }
    }
  }
  ctx.textAlign = "left";
}

function render({ model, el }) {
  const card = new Card(el, model, "unmasking", "Which positions are decided when, and how sure was the model of them?");
  let grids = [], lit = -1;
  const area = make("div", "", card.body);
  area.style.height = "100%";
  const under = (x, y) => {
    for (const grid of grids) {
      const place = Math.floor((x - grid.x) / grid.cell), step = Math.floor((y - grid.y) / grid.cell);
      if (place >= 0 && place < grid.places && step >= 0 && step < grid.steps) return { grid, place, step };
    }
    return null;
  };
  const told = ({ grid, place, step }, i) => {
    const { frame } = card, stands = frame.token[i] !== frame.mask;
    return [
      `${frame.texts[grid.text]}, position ${place + 1}, step ${step + 1}`,
      frame.decided[i] ? `decided now: ${word(frame, i)}` : stands ? `stands: ${word(frame, i)}` : "still masked",
      `policy's score ${frame.score[i].toPrecision(3)}`,
    ];
  };
  card.surface(area, (ctx, width, height) => {
    grids = places(card.frame, width, height);
    grids.forEach((grid) => paint(ctx, card, grid, lit));
  }, {
    pointermove(x, y, event) {
      const hit = under(x, y), i = hit ? hit.grid.from + hit.step * hit.grid.places + hit.place : -1;
      card.hint(hit ? told(hit, i) : null, event);
      if (i !== lit) card.schedule();
      lit = i;
    },
    pointerleave(x, y, event) { lit = -1; card.hint(null, event); card.schedule(); },
    click(x, y) {
      const hit = under(x, y), name = hit ? card.frame.texts[hit.grid.text] : "";
      card.set("chosen", name === card.chosen ? "" : name);
    },
  });
  card.onFrame = (frame) => {
    const left = frame.left_out ? ` · ${grouped(frame.left_out)} texts not shown` : "";
    card.say(`steps downwards, positions to the right; full colour: decided in that step, pale: before, grey: masked${left}`);
  };
  return () => card.close();
}

export default { render };
