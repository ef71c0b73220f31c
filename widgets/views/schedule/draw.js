// The schedule: a row for each lane, its work over time, and the memory of one lane under them.

import { css } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { clamp, grouped, seconds } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { TIME_AXIS, Timeline } from "../../canvas/timeline.js";
import { ScheduleLooks, scheduleLegend } from "./looks.js";
import { ARROWS, drawLaunches } from "./launches.js";
import { MEMORY_HEAD, MEMORY_HIGH, drawMemory, memoryLane } from "./memory.js";
import { drawMessage, messageAt, messageWords, stripRoom } from "./messages.js";
import { schedulePlan } from "./plan.js";
import { ScheduleRows } from "./rows.js";
import { gapWords, memoryWords, spanWords } from "./words.js";

const NAME_ROOM = [96, 190]; // pixels for lanes' names, at least and at most
const AROUND = 128; // pixels of a view that are not lanes: its head, its tools, its axis

function render({ model, el }) {
  const card = new Card(el, model, "schedule", "Where does the time of each lane go?");
  const area = make("div", "", card.body), legend = make("div", "pw-legend", card.tools);
  area.style.height = "100%";
  const rows = new ScheduleRows(card), state = { critical: false, arrows: false, over: -1, message: -1, lane: -1, pinned: "" };
  let timeline = null, looks = null;
  const owner = (spot) => {
    if (!spot || spot.lane < 0) return "";
    if (spot.x < timeline.left) return card.frame.names[spot.lane];
    const { frame } = card, task = state.message >= 0 ? frame.move_task[state.message] : state.over >= 0 ? frame.span_task[state.over] : -1;
    return task >= 0 ? frame.tasks[task] : "";
  };
  const memoryRow = () => memoryLane(card.frame, state.lane >= 0 ? state.lane : card.frame.names.indexOf(card.chosen));
  const view = {
    head: 4,
    left: NAME_ROOM[0],
    hatches: true, // upon the grounds of its rows
    mini: (frame) => frame.mini,
    pieces,
    get foot() { return card.frame.memory_count ? MEMORY_HEAD + MEMORY_HIGH + 12 : 0; },
    get pitch() { const { deep, move_row: moves } = card.frame; return [moves ? 10 : 7, 34 + 14 * (Math.max(1, ...deep) - 1) + (moves ? 10 : 0)]; },
    draw(ctx) {
      rows.show(ctx, timeline, looks);
      state.areShares = Boolean(rows.shares);
      state.launches = drawLaunches(ctx, timeline, rows, state.over, state.arrows);
      if (state.critical && card.frame.path_row) drawPath(ctx, timeline);
      if (state.over >= 0 && state.over < card.frame.span_row.length) outline(ctx, timeline, rows, state.over);
      if (state.message >= 0) drawMessage(ctx, timeline, state.message);
    },
    below(ctx, top) {
      const row = memoryRow();
      if (row >= 0) drawMemory(ctx, timeline, row, top);
    },
    // A step timed between long preparations and a sweep is a hair of the run: show it large.
    // A step's operations are hairs of it, too: show a few of them, where most go on side by side.
    near({ begin, finish, close }, end) {
      if (close) return close;
      const wide = finish - begin, edge = 0.03 * wide;
      return wide > 0 && wide < 0.3 * end ? [Math.max(0, begin - edge), Math.min(end, finish + edge)] : null;
    },
    window: () => ({ critical: state.critical }),
    said: (t) => scheduleSaid(t, state),
    hover(spot, event) {
      const inLane = spot && spot.lane >= 0;
      state.message = inLane ? messageAt(timeline, spot) : -1;
      state.over = inLane && state.message < 0 && spot.x >= timeline.left && !rows.shares ? rows.at(timeline, spot) : -1;
      if (inLane) state.lane = spot.lane;
      card.set("chosen", owner(spot) || state.pinned);
      card.hint(spotWords(timeline, spot, state, rows, memoryRow), event);
      card.schedule();
    },
    click(spot) {
      const name = owner(spot);
      state.pinned = state.pinned === name ? "" : name;
      card.set("chosen", state.pinned);
    },
  };
  card.onUnpinned(() => { state.pinned = ""; });
  timeline = new Timeline(card, area, view);
  const relook = () => {
    if (!card.frame) return;
    looks = new ScheduleLooks(card.frame, card.colors);
    scheduleLegend(card, looks, legend);
  };
  card.onTheme = relook;
  card.onFrame = () => {
    state.over = state.message = -1;
    relook();
    timeline.left = roomForNames(timeline);
    plan.show();
    launches.style.display = card.frame.span_from_row ? "" : "none";
    const usual = card.model.get("options").height || 560;
    const around = AROUND + view.foot + plan.words.offsetHeight;
    card.height.wish(Math.min(usual, around + card.frame.lanes * view.pitch[1]));
  };
  card.choice(["Critical path"], -1, (which) => { state.critical = which === 0; });
  const launches = card.choice(["Launches"], -1, (which) => { state.arrows = which === 0; });
  launches.title = "Arrows from each call on the host to what it started on a device";
  timeline.offerReset();
  const plan = schedulePlan(card);
  return () => card.close();
}

function scheduleSaid(t, state) {
  const { frame } = t, parts = [], shown = frame.span_row.length;
  if (state.critical && frame.path_note) parts.push(frame.path_note);
  const fits = Math.min(frame.lanes, Math.max(1, Math.floor(t.fits)));
  if (state.arrows && state.areShares) parts.push("zoom in to see launches");
  else if (state.arrows && state.launches > ARROWS) parts.push(`${grouped(state.launches)} launches in sight: zoom in to see them`);
  if (state.areShares) parts.push("shares of each lane's time: zoom in to see spans");
  if (frame.close && t.part === t.near) parts.push(`${seconds(t.to - t.from)} of ${seconds(t.end)}, where most goes on side by side`);
  if (fits < frame.lanes) parts.push(`showing ${grouped(fits)} of ${grouped(frame.lanes)} lanes`);
  if (shown < frame.total) parts.push(`showing ${grouped(shown)} of ${grouped(frame.total)} spans`);
  return parts.join(" · ") || "Ctrl + wheel zooms, drag pans, Shift + drag counts";
}

// What may be counted in a range: the measured spans where there are both.
function pieces(frame) {
  const { layers } = frame, lane = layers > 1 ? frame.span_row.map((row, i) => (frame.span_layer[i] ? -1 : row)) : frame.span_row;
  return { names: frame.kinds, lane, kind: frame.span_kind, start: frame.span_start, stop: frame.span_stop,
    count: frame.span_count, text: (i) => frame.tasks[frame.span_task[i]] || "", gap: "no work", missing: frame.missing };
}

// Names of lanes that differ in their last letters only are of no use where those are cut off.
function roomForNames(t) {
  const { ctx } = t.surface;
  ctx.font = `12px ${t.card.colors.font}`;
  return clamp(Math.max(...t.frame.names.map((name) => ctx.measureText(name).width)) + 12, ...NAME_ROOM);
}

function spotWords(t, spot, { over, message }, rows, memoryRow) {
  if (!spot) return null;
  if (message >= 0) return messageWords(t, message);
  if (over >= 0) return spanWords(t, over);
  if (spot.lane >= 0 && spot.x < t.left) return [t.frame.names[spot.lane]];
  if (spot.lane >= 0) return rows.shares ? rows.shares.words(t, spot, rows.layerAt(t, spot)) : gapWords(t, spot);
  const row = spot.y > t.bottom + TIME_AXIS && spot.x >= t.left ? memoryRow() : -1;
  return row >= 0 ? memoryWords(t, row, spot.time) : null;
}

function outline(ctx, t, rows, i) {
  const [top, high] = rows.box(t, i), { frame, card } = t;
  const left = t.x(frame.span_start[i]), right = t.x(frame.span_stop[i]);
  ctx.strokeStyle = css(card.colors.ink);
  ctx.lineWidth = 1.5;
  ctx.strokeRect(left, top, Math.max(1, right - left - 1), high);
}

// The chain that the end had to wait for: spans as boxes, messages as lines, joined where it changes
// lane.
function drawPath(ctx, t) {
  const { frame, card } = t, high = Math.max(3, t.pitch * 0.18), y = (row) => t.y(row) + t.pitch - stripRoom(t) - high;
  ctx.fillStyle = ctx.strokeStyle = css(card.colors.ink);
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = 0; i < frame.path_row.length; i++) {
    const left = t.x(frame.path_start[i]), right = t.x(frame.path_stop[i]), row = frame.path_row[i];
    const way = frame.path_way[i], tall = way ? 1.5 : high;
    if (right >= t.left && left <= t.width) {
      ctx.fillRect(left, y(row) + (high - tall) / 2, Math.max(1, right - left), tall);
    }
    if (i === 0 || right < t.left || t.x(frame.path_stop[i - 1]) > t.width) continue;
    ctx.moveTo(t.x(frame.path_stop[i - 1]), y(frame.path_row[i - 1]) + high / 2);
    ctx.lineTo(left, y(row) + high / 2);
  }
  ctx.stroke();
}

export default { render };
