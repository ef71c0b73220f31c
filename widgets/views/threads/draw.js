// The thread view: a lane for each thread, forks and reads between them, and who sees which block.

import { make } from "../../page/nodes.js";
import { countBelow, grouped } from "../../canvas/numbers.js";
import { LINE, LINES, READ_HEAD, drawReading } from "../../canvas/reading.js";
import { Card } from "../../canvas/card.js";
import { TIME_AXIS, Timeline } from "../../canvas/timeline.js";
import { ThreadCommands } from "./commands.js";
import { drawEdges, drawMarks, drawPath, drawThreadEnds, edgeNear } from "./edges.js";
import { ThreadLanes } from "./lanes.js";
import { lookOf, lookWords } from "./look.js";
import { SightMatrix } from "./matrix.js";
import { drawReaders, readerWords } from "./readers.js";
import { threadScale } from "./scales.js";
import { threadWords, threadsLegend } from "./words.js";

const THREADS_AROUND = 132; // pixels of the view, at least, that are neither lanes nor text
const MORE = 1.25; // of the host's height, where there are many threads

function render({ model, el }) {
  const card = new Card(el, model, "threads", "Who thinks what, when, and who reads whom?");
  card.body.style.display = "flex";
  const area = make("div", "pw-lanes", card.body), side = make("div", "pw-sight", card.body);
  area.style.cssText = "flex:1 1 0;height:100%";
  side.style.height = "100%";
  const state = { axis: "time", token: -1, edge: -1, lane: -1, pinned: "", readers: true };
  const lanes = new ThreadLanes(card);
  let scale = threadScale(card, "time"), timeline = null, matrix = null, said = null;
  const light = (name) => card.set("chosen", name || state.pinned);
  const pin = (name) => {
    state.pinned = state.pinned === name ? "" : name;
    card.set("chosen", state.pinned);
    commands.show(card.frame, state.pinned);
  };
  card.onUnpinned(() => {
    state.pinned = "";
    if (card.frame) commands.show(card.frame, "");
  });
  const nameOf = (lane) => (lane >= 0 && timeline.known(lane) ? card.frame.names[timeline.at(lane)] : "");
  const view = {
    head: 20,
    left: 112,
    foot: READ_HEAD + LINE * LINES + 10,
    pitch: [5, 38],
    scale: () => scale,
    draw(ctx) {
      drawThreads(ctx, timeline, lanes, state);
      said = laneToRead(timeline, lanes, state);
    },
    below(ctx, top) {
      if (state.readers) drawReaders(ctx, timeline, lanes, matrix, state.lane);
      const isToken = state.token >= 0 && !lanes.isBinned;
      const until = isToken ? card.frame.token_time[state.token] : card.cursor;
      const hovered = lanes.tokens.frame === card.frame ? state.token : -1;
      drawReading(ctx, timeline, lanes.tokens, { lane: said, hovered, until }, top);
    },
    window: () => ({ axis: state.axis, reading: said, until: card.cursor }),
    said: (t) => threadsSaid(t, lanes),
    hover(spot, event) {
      const isIn = Boolean(spot) && spot.lane >= 0;
      state.lane = isIn ? spot.lane : -1;
      state.token = isIn && spot.x >= timeline.left ? lanes.at(timeline, state.axis, spot) : -1;
      state.edge = spot && spot.x >= timeline.left ? edgeNear(timeline, lanes, state.axis, spot) : -1;
      matrix.look = isIn ? lookOf(timeline, lanes, state) : null;
      light(nameOf(state.lane));
      const words = threadWords(timeline, lanes, state, spot);
      const reads = isIn && state.readers ? readerWords(timeline, lanes, matrix, state.lane) : [];
      card.hint(words && [...words, ...reads, ...lookWords(card.frame, matrix.look)], event);
      card.schedule();
    },
    click: (spot) => pin(nameOf(spot.lane)),
  };
  timeline = new Timeline(card, area, view);
  matrix = new SightMatrix(card, side, (cell, event) => {
    light(cell ? card.frame.block_owner[cell.block] : "");
    card.hint(cell ? matrix.words(cell) : null, event);
    card.schedule();
  }, (cell) => cell && pin(card.frame.block_owner[cell.block]));
  matrix.timeline = timeline;
  const choice = card.choice(["Time", "Steps", "Tokens"], 0, (which) => {
    state.axis = ["time", "step", "place"][which];
    scale = threadScale(card, state.axis);
    Object.assign(state, { token: -1, edge: -1 });
    timeline.zoomTo(null);
  });
  choice.setAttribute("aria-label", "What the axis counts");
  const arcs = card.choice(["Who reads whom"], 0, (which) => { state.readers = which === 0; });
  arcs.title = "Arcs at the cursor from each thread to those that see what it wrote";
  const legend = make("div", "pw-legend", card.tools);
  const commands = new ThreadCommands(card);
  timeline.offerReset();
  card.onTheme = () => {
    lanes.retheme();
    threadsLegend(card, legend);
  };
  card.onTheme();
  card.onFrame = (frame) => {
    Object.assign(state, { token: -1, edge: -1 });
    matrix.read(frame);
    arcs.style.display = frame.blocks?.length ? "" : "none";
    commands.show(frame, state.pinned);
    lanes.read(frame);
    card.fitHeight(frame);
  };
  card.fitHeight = (frame) => {
    const usual = model.get("options").height || 560;
    // What stands above the lanes wraps where the view is narrow; two lanes at least are to be seen.
    const around = Math.max(THREADS_AROUND, card.root.offsetHeight - card.body.offsetHeight + TIME_AXIS);
    const inside = around + view.head + view.foot, two = Math.min(2, frame.lanes) * view.pitch[1];
    card.height.wish(Math.max(inside + two, Math.min(usual * MORE, inside + frame.lanes * view.pitch[1])));
  };
  return () => card.close();
}

function drawThreads(ctx, t, lanes, state) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(t.left - 6, t.top, t.width, t.bottom - t.top);
  ctx.clip();
  drawPath(ctx, t, lanes, state.axis);
  lanes.show(ctx, t, state.axis, state.token);
  if (state.axis === "place") lanes.fade(ctx, t);
  drawEdges(ctx, t, lanes, state.axis, state.edge);
  drawThreadEnds(ctx, t, lanes, state.axis);
  drawMarks(ctx, t, lanes, state.axis);
  ctx.restore();
}

// Which lane is read: under the pointer, else chosen, else the one that spoke last by the cursor.
function laneToRead(t, lanes, state) {
  const { frame, card } = t;
  if (state.lane >= 0) return state.lane;
  const chosen = frame.names.indexOf(card.chosen);
  if (chosen >= 0) return chosen + frame.lane0;
  let latest = -1, time = -Infinity;
  for (const [lane, [from, to]] of lanes.spans) {
    const passed = countBelow(frame.token_time.subarray(from, to), card.cursor + 1e-12);
    if (!passed || frame.token_time[from + passed - 1] <= time) continue;
    [latest, time] = [lane, frame.token_time[from + passed - 1]];
  }
  return latest;
}

function threadsSaid(t, lanes) {
  const { frame } = t, parts = [], fits = Math.min(frame.lanes, Math.max(1, Math.floor(t.fits)));
  const [when, refused] = frame.refusal || [];
  if (refused && when <= t.card.cursor + 1e-12) parts.push(`refused: ${refused}`);
  if (fits < frame.lanes) parts.push(`showing ${grouped(fits)} of ${grouped(frame.lanes)} threads`);
  if (lanes.isBinned) parts.push(`showing ${grouped(frame.tokens)} tokens in ${grouped(frame.token_lane.length)} columns`);
  else if (frame.shown < frame.tokens) parts.push(`showing ${grouped(frame.shown)} of ${grouped(frame.tokens)} tokens`);
  if (frame.edge_to.length < frame.edge_total) parts.push(`${grouped(frame.edge_to.length)} of ${grouped(frame.edge_total)} forks and reads`);
  if (frame.sight_row.length < frame.sight_total) parts.push(`${grouped(frame.sight_row.length)} of ${grouped(frame.sight_total)} moves of blocks`);
  if (!t.readable) parts.push("zoom in (Ctrl + wheel) to read");
  return parts.join(" · ");
}

export default { render };
