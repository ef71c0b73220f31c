// The topology: what has travelled between whom up to the cursor, as a ring or as a matrix.

import { make } from "../../page/nodes.js";
import { grouped, seconds, worded } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { Uses } from "./links.js";
import { Ring } from "./ring.js";
import { Pairs } from "./table.js";

const CROWD = 24; // more ends than this are first shown as a matrix

function render({ model, el }) {
  const card = new Card(el, model, "topology", "What travels between whom?");
  const ring = new Ring(), pairs = new Pairs(), uses = new Uses();
  let shape = null, lit = -1, told = -1;
  const now = () => {
    if (shape === uses && card.frame.links.length || shape && shape !== uses) return shape;
    return card.frame.names.length > CROWD ? pairs : ring;
  };
  const shapes = [ring, pairs, uses];
  const buttons = card.choice(["Ring", "Matrix", "Links"], 0, (which) => {
    shape = shapes[which];
    lit = -1;
    if (card.frame) explain(card.frame);
  });
  const explain = (frame) => {
    [...buttons.children].forEach((b, i) => b.setAttribute("aria-pressed", String(now() === shapes[i])));
    buttons.children[2].hidden = !frame.links.length;
    const left = frame.left_out ? ` · ${grouped(frame.left_out)} ends not shown` : "";
    const fewer = frame.links_left ? ` · the ${frame.links.length} busiest of ${grouped(frame.links.length + frame.links_left)}` : "";
    const matrix = now() === pairs;
    card.say(now() === uses ? `links that messages share, up to the cursor${fewer}`
      : `${matrix ? "shade" : "width"}: bytes up to the cursor${left}`);
  };
  const words = (i) => {
    if (now() === uses) return uses.words(card.frame, i);
    const { frame } = card, busy = frame.busy[i];
    const speed = busy > 0 ? [`${seconds(busy)} under way, ${worded(frame.bytes[i] / busy, "B/s")}`] : [];
    const count = frame.count[i];
    return [
      `${frame.names[frame.source[i]]} to ${frame.names[frame.target[i]]}`,
      `${worded(frame.bytes[i], "B")} in ${grouped(count)} ${count === 1 ? "message" : "messages"}`,
      ...speed,
    ];
  };
  const total = (end) => {
    const { frame } = card, sum = [0, 0];
    frame.bytes.forEach((size, i) => {
      if (frame.source[i] === end) sum[0] += size;
      if (frame.target[i] === end) sum[1] += size;
    });
    return [frame.names[end], `sent ${worded(sum[0], "B")}`, `received ${worded(sum[1], "B")}`];
  };
  const area = make("div", "", card.body);
  area.style.height = "100%";
  card.surface(area, (ctx, width, height) => {
    const drawing = now();
    drawing.place(card.frame, width, height);
    drawing.draw(ctx, card, lit);
  }, {
    pointermove(x, y, event) {
      const drawing = now(), end = drawing.endAt(x, y);
      lit = end >= 0 ? -1 : drawing.linkAt(card.frame, x, y);
      card.hint(end >= 0 ? total(end) : lit >= 0 ? words(lit) : null, event);
      if (lit !== told) card.schedule();
      told = lit;
    },
    pointerleave(x, y, event) { lit = told = -1; card.hint(null, event); card.schedule(); },
    click(x, y) {
      const end = now().endAt(x, y), name = end >= 0 ? card.frame.names[end] : "";
      card.set("chosen", name === card.chosen ? "" : name);
    },
  });
  card.onFrame = (frame) => {
    explain(frame);
    lit = told = -1;
  };
  return () => card.close();
}

export default { render };
