// The token river: what each request says in its lane, token by token at its time.

import { laneChooser } from "../../canvas/chooser.js";
import { css, mix } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { countBelow, grouped } from "../../canvas/numbers.js";
import { LINE, LINES, READ_HEAD, drawReading } from "../../canvas/reading.js";
import { Card } from "../../canvas/card.js";
import { TIME_AXIS, Timeline } from "../../canvas/timeline.js";
import { Tokens, surety } from "../../canvas/token_text.js";
import { drawRiver, tokenAt, tokenWords } from "./river.js";

const LEAST_LANES = 4; // that a river has room for: the first few come one by one

function render({ model, el }) {
  const card = new Card(el, model, "token-river", "What does each request say, and how sure is it of each token?");
  const area = make("div", "", card.body);
  area.style.height = "100%";
  const legend = make("div", "pw-legend", card.tools);
  let timeline = null, tokens = null, hovered = -1, reading = -1;
  const choose = laneChooser(card, () => timeline);
  const view = {
    head: 4,
    foot: READ_HEAD + LINE * LINES + 10,
    pitch: [18, 28],
    draw(ctx) {
      if (hovered >= card.frame.token_lane.length) hovered = -1;
      drawRiver(ctx, timeline, tokens, hovered);
    },
    below(ctx, top) {
      reading = laneRead(timeline, hovered);
      const until = hovered >= 0 ? card.frame.token_time[hovered] : card.cursor;
      drawReading(ctx, timeline, tokens, { lane: reading, hovered, until }, top);
    },
    window: () => ({ reading, until: card.cursor }),
    said: (t) => riverSaid(t),
    hover(spot, event) {
      hovered = spot && spot.lane >= 0 ? tokenAt(timeline, tokens, spot) : -1;
      choose.hover(spot ? spot.lane : -1);
      card.hint(hovered >= 0 ? tokenWords(timeline, hovered) : null, event);
      card.schedule();
    },
    click(spot) {
      choose.pin(spot.lane);
    },
  };
  timeline = new Timeline(card, area, view);
  timeline.offerReset();
  card.onTheme = () => riverLegend(card, legend);
  card.onFrame = (frame) => {
    tokens = new Tokens(frame);
    riverLegend(card, legend);
    card.fitHeight(frame);
  };
  // As tall as its lanes, up to the usual height.
  card.fitHeight = (frame) => {
    const around = card.root.offsetHeight - card.body.offsetHeight + TIME_AXIS + view.head + view.foot;
    const lanes = Math.max(LEAST_LANES, frame.lanes) * view.pitch[1];
    card.height.wish(Math.min(model.get("options").height || 560, around + lanes));
  };
  return () => card.close();
}

// Which lane is read: hovered, else chosen, else the one that spoke last before the cursor.
function laneRead(timeline, hovered) {
  const { frame, card } = timeline;
  if (hovered >= 0) return frame.token_lane[hovered];
  const chosen = frame.names.indexOf(card.chosen);
  if (chosen >= 0) return chosen + frame.lane0;
  const last = countBelow(frame.token_time, card.cursor + 1e-12) - 1;
  return last >= 0 ? frame.token_lane[last] : -1;
}

function riverSaid(timeline) {
  const { frame } = timeline, parts = [];
  const fits = Math.min(frame.lanes, Math.max(1, Math.floor(timeline.fits)));
  if (fits < frame.lanes) parts.push(`showing ${grouped(fits)} of ${grouped(frame.lanes)} requests`);
  if (frame.thinned) parts.push(`${grouped(frame.token_lane.length)} of ${grouped(frame.tokens)} tokens`);
  parts.push(timeline.readable ? "drag pans, double-click shows all" : "zoom in (Ctrl + wheel) to read");
  return parts.join(" · ");
}

function riverLegend(card, legend) {
  const drafting = Boolean(card.frame?.drafting), key = JSON.stringify([card.colors, drafting]);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const { colors } = card, hue = colors.hues[0];
  const item = (text, color, height) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(text);
    canvas.width = canvas.height = 14;
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = css(color);
    ctx.fillRect(4, 14 - height, 6, height);
    return ctx;
  };
  item("sure", mix(colors.paper, hue, surety(0)), 14);
  item("even odds", mix(colors.paper, hue, surety(-0.69)), 14);
  item("unlikely", mix(colors.paper, hue, surety(-5)), 14);
  if (!drafting) return;
  const held = item("draft that held", mix(colors.paper, hue, surety(-0.69)), 14);
  held.fillStyle = css(colors.ink, 0.7);
  held.fillRect(3, 12, 8, 2);
  item("refused", colors.idle, 7);
  item("rolled back with it", colors.idle, 7).clearRect(5, 8, 4, 5);
}

export default { render };
