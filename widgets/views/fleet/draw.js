// The fleet: a tile for each replica, by pool, with what waits, runs and is cached; a heat grid
// where there are too many for tiles.

import { make } from "../../page/nodes.js";
import { grouped, three, worded } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { hatchBand } from "../../canvas/texture.js";
import { drawCell, drawTile } from "./tile.js";
import { layout } from "./layout.js";
import { drawMoves } from "./moves.js";

function render({ model, el }) {
  const card = new Card(el, model, "fleet", "Which replicas have work?");
  const area = make("div", "", card.body);
  area.style.height = "100%";
  let places = null, lit = -1;
  const words = (i) => {
    const { frame } = card;
    const told = [`${frame.names[i]}${frame.dead[i] ? ", dead" : ""}`,
      `${grouped(frame.running[i])} running, ${grouped(frame.waiting[i])} waiting`];
    if (frame.thinned) return told;
    told.push(`pages: ${worded(frame.used[i], "%")} used, ${worded(frame.cached[i], "%")} cached`,
      `${worded(frame.hits[i], "%")} of prompt tokens found in its cache`,
      `at work ${worded(Math.min(1, frame.busy[i]), "%")} of the time`);
    if (frame.powered) told.push(`${three(frame.watts[i])} W on average`);
    return told;
  };
  const at = (x, y) => places ? places.cells.findIndex((c) => c && x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + c.h) : -1;
  card.surface(area, (ctx, width, height) => {
    const { frame } = card;
    places = layout(frame, width, height);
    if (frame.modelled) hatchBand(ctx, card.colors, 0, 0, width, height);
    ctx.textBaseline = "alphabetic";
    for (const pool of places.pools) {
      ctx.fillStyle = `rgb(${card.colors.faint})`;
      ctx.fillText(pool.title, pool.x, pool.y);
    }
    places.cells.forEach((cell, i) => {
      const chosen = i === lit || frame.names[i] === card.chosen;
      if (places.tiles) drawTile(ctx, card, i, cell, chosen);
      else drawCell(ctx, card, i, cell, chosen);
    });
    if (places.tiles) drawMoves(ctx, card, places);
  }, {
    pointermove(x, y, event) {
      const found = at(x, y);
      card.hint(found >= 0 ? words(found) : null, event);
      if (found !== lit) card.schedule();
      lit = found;
    },
    pointerleave(x, y, event) { lit = -1; card.hint(null, event); card.schedule(); },
    click(x, y) {
      const found = at(x, y), name = found >= 0 ? card.frame.names[found] : "";
      card.set("chosen", name === card.chosen ? "" : name);
    },
  });
  card.onFrame = (frame) => {
    const shown = "dots: requests that wait · bar: those that run · right edge: pages used and cached";
    const said = frame.names.length > 160 ? "shade: requests running and waiting, of the most that can run"
      : frame.thinned ? "dots: requests that wait · bar: those that run (pages not recorded)" : shown;
    card.say(frame.every > 1 ? `${said} · one request in ${grouped(frame.every)} is recorded` : said);
  };
  return () => card.close();
}

export default { render };
