// The attention reader: heads on the left, one of them as queries by keys on the right.

import { css } from "../canvas/colors.js";
import { Card } from "../canvas/card.js";
import { grouped } from "../canvas/numbers.js";
import { make } from "../page/nodes.js";
import { Heads } from "./heads.js";
import { LEFT, Matrix } from "./matrix.js";
import { shadesOf, Tiles } from "./tiles.js";

const LAYOUT = `
.pw-attention{display:grid;height:100%;gap:0 20px;grid-template-columns:minmax(150px,.42fr) minmax(0,1fr)}
.pw-attention>div{min-height:0}
.pw-attention canvas:focus-visible{outline:2px solid var(--ink);outline-offset:2px}
.narrow .pw-attention{grid-template-columns:minmax(0,1fr);grid-template-rows:minmax(90px,.35fr) minmax(0,1fr)}`;
const ZOOM = 1.25;
const STEP = 60; // pixels a key pans
const LEGEND = [1, 0.1, 0.01, 0.001, 0.0001];

function render({ model, el }) {
  const card = new Card(el, model, "attention", "Which tokens does each token look at?");
  make("style", "", el, LAYOUT);
  const parts = make("div", "pw-attention", card.body);
  const left = make("div", "", parts), right = make("div", "", parts);
  const tiles = new Tiles(() => card.schedule());
  const matrix = new Matrix(card, tiles);
  const heads = new Heads(card, () => {
    card.set("window", { layer: heads.layer, head: heads.head });
    turn();
  });
  const base = () => `layer=${heads.layer}&head=${heads.head}`;
  function turn() {
    const { address } = card.frame;
    tiles.turnTo(`${address}/tile?${base()}&how=${matrix.how}`);
    const asked = `${address}/received?${base()}`;
    if (asked !== matrix.asked) {
      matrix.asked = asked;
      fetch(asked).then((answer) => (answer.ok ? answer.arrayBuffer() : null)).then((data) => {
        if (matrix.asked !== asked || !data) return;
        matrix.received = new Float32Array(data);
        card.schedule();
      }, () => {});
    }
    card.rename(`Which tokens does each token look at in layer ${heads.layer}, head ${heads.head}?`);
    card.schedule();
  }
  card.choice(["Largest weight", "Mean mass"], 0, (which) => {
    matrix.how = which ? "mass" : "most";
    turn();
  });
  const whole = make("button", "", make("div", "pw-switch", card.tools), "All tokens");
  whole.type = "button";
  whole.onclick = () => matrix.all();
  const legend = make("div", "pw-legend", card.tools);
  card.onTheme = () => drawLegend(card, legend);
  drawLegend(card, legend);
  card.onFrame = (frame) => {
    if (frame.empty) return;
    if (frame.address !== matrix.of) {
      [matrix.of, matrix.scale, matrix.received, matrix.summed] = [frame.address, 0, null, undefined];
    }
    heads.take(frame);
    turn();
  };
  wireHeads(card, left, heads);
  wireMatrix(card, right, matrix, tiles);
  return () => {
    tiles.turnTo("");
    card.close();
  };
}

// What both canvases are for who sees none of it, and by which keys.
function named(surface, label, key) {
  const { canvas } = surface;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", label);
  canvas.addEventListener("keydown", key);
}

function wireHeads(card, area, heads) {
  const surface = card.surface(area, (ctx, width, height) => {
    if (!card.frame.empty) heads.draw(ctx, width, height);
  }, {
    ownKeys: true,
    pointermove(x, y, event) {
      const spot = heads.frame && heads.at(x, y);
      card.hint(spot ? heads.words(spot) : null, event);
    },
    pointerleave: () => card.hint(null),
    click(x, y) {
      const spot = heads.frame && heads.at(x, y);
      if (spot) heads.turn(spot.layer, spot.head);
    },
  });
  named(surface, "Every head, small: arrow keys choose one", (event) => heads.key(event));
}

function wireMatrix(card, area, matrix, tiles) {
  let held = null;
  const choose = (spot) => {
    const place = spot ? matrix.pageAt(spot.key) : -1;
    const wanted = place < 0 ? "" : `page:${card.frame.page_number[place]}`;
    card.set("chosen", wanted === card.chosen ? "" : wanted);
  };
  const paint = (ctx, width, height, ratio) => {
    if (card.frame.empty) return;
    matrix.draw(ctx, width, height, ratio);
    const by = 2 ** matrix.shown, { frame } = card;
    const cell = by === 1 ? "each cell one query and one key" : `each cell ${by} × ${by} tokens`;
    const few = frame.sampled < frame.tokens ? `; small pictures of ${grouped(frame.sampled)} queries` : "";
    card.say(tiles.fault || `${cell}; blank: the key comes later${few}`);
  };
  const surface = card.surface(area, paint, {
    ownKeys: true,
    wheelDoes: () => "zooms",
    wheel: (x, y, event) => matrix.zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, [Math.max(LEFT, x), y]),
    pointerdown(x, y, event) {
      held = { x, y, moved: 0 };
      event.target.setPointerCapture(event.pointerId);
    },
    pointermove(x, y, event) {
      if (held) {
        held.moved += Math.abs(x - held.x) + Math.abs(y - held.y);
        matrix.pan(held.x - x, held.y - y);
        [held.x, held.y] = [x, y];
      }
      const spot = matrix.at(x, y);
      matrix.hover = spot && spot.query >= 0 ? spot : null;
      card.hint(spot && !(held && held.moved > 4) ? matrix.words(spot) : null, event);
      card.schedule();
    },
    pointerup(x, y) {
      if (held && held.moved <= 4) choose(matrix.at(x, y));
      held = null;
    },
    pointerleave() {
      matrix.hover = null;
      card.hint(null);
      card.schedule();
    },
    dblclick: (x, y) => matrix.zoom(ZOOM ** 4, [x, y]),
  });
  surface.canvas.style.touchAction = "none";
  named(surface, "One head, queries by keys: arrows move, plus and minus zoom, 0 shows all", (event) => {
    const by = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (by) matrix.pan(...by);
    else if ("+=".includes(event.key)) matrix.zoom(ZOOM);
    else if (event.key === "-") matrix.zoom(1 / ZOOM);
    else if (event.key === "0") matrix.all();
    else return;
    event.preventDefault();
  });
}

// The shades by the code that paints the tiles, so that the legend cannot lie.
function drawLegend(card, legend) {
  const shades = shadesOf(card.colors);
  legend.replaceChildren();
  for (const weight of LEGEND) {
    const item = make("span", "", legend), canvas = make("canvas", "", item);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    canvas.width = canvas.height = 14;
    const value = shades[1 + Math.round(254 * (1 + Math.log10(weight) / 5))];
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = css([value & 255, (value >> 8) & 255, (value >> 16) & 255]);
    ctx.fillRect(0, 0, 14, 14);
    item.append(weight === 1 ? "100 % of a query's attention" : `${weight * 100} %`);
  }
}

export default { render };
