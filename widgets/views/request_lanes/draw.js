// Request lanes: the scheduler's steps as a strip, under it each request's life.

import { laneChooser } from "../../canvas/chooser.js";
import { css, mix, textOn } from "../../canvas/colors.js";
import { make } from "../../page/nodes.js";
import { clamp, clockTime, countBelow, grouped, seconds } from "../../canvas/numbers.js";
import { Card } from "../../canvas/card.js";
import { fit } from "../../canvas/text.js";
import { GAP, NAMES, Timeline } from "../../canvas/timeline.js";
import { drawJourneys, journeyWords } from "./journeys.js";
import { lanesLegend } from "./legend.js";

const STRIP = 58;
const STRIP_BASE = 44;
const CHUNKS = ["prefill of", "masks decided in", "denoising of"];
// then preempted and swapped
const QUEUED = 0;
const RUNNING = 1;
const USUAL = ["length", "stop"]; // reasons to end that are not worth a word

function render({ model, el }) {
  const card = new Card(el, model, "request-lanes", "What happened to each request, and when?");
  const area = make("div", "", card.body);
  area.style.height = "100%";
  const picked = { step: -1, batch: null };
  const legend = make("div", "pw-legend", card.tools);
  let timeline = null;
  const choose = laneChooser(card, () => timeline);
  const view = {
    head: STRIP,
    pitch: [10, 30],
    pieces: (frame) => ({ names: frame.states, lane: frame.stretch_lane, kind: frame.stretch_state,
      start: frame.stretch_start, stop: frame.stretch_stop, gap: "", missing: frame.missing }),
    draw: (ctx) => drawLanes(ctx, timeline, picked),
    said: (t, some) => lanesSaid(t, some),
    hover(spot, event) {
      picked.over = spot && spot.y < STRIP ? stepAt(card.frame, spot.time) : -1;
      choose.hover(spot ? spot.lane : -1);
      card.hint(spot && laneWords(timeline, spot, picked.over), event);
      card.schedule();
    },
    click(spot) {
      if (spot.y >= STRIP) return choose.pin(spot.lane);
      const step = stepAt(card.frame, spot.time);
      picked.step = step === picked.step ? -1 : step;
      if (picked.step >= 0) card.set("seek", card.frame.step_stop[step]);
      return card.schedule();
    },
  };
  timeline = new Timeline(card, area, view);
  card.onTheme = () => lanesLegend(card, legend);
  card.onFrame = (frame) => {
    card.rename(frame.question);
    lanesLegend(card, legend);
  };
  timeline.offerReset();
  return () => card.close();
}

function lanesSaid(timeline, some) {
  const { frame } = timeline, parts = [];
  const fits = Math.min(frame.lanes, Math.max(1, Math.floor(timeline.fits)));
  if (fits < frame.lanes) parts.push(`showing ${grouped(fits)} of ${grouped(frame.lanes)} requests`);
  if (frame.tick_lane.length < frame.ticks) {
    parts.push(`${grouped(frame.tick_lane.length)} of ${grouped(frame.ticks)} tokens`);
  }
  if (frame.step_every > 1) parts.push(`every ${frame.step_every}th of ${grouped(frame.steps)} steps`);
  if (parts.length) return parts.join(" · ");
  return some ? "Ctrl + wheel zooms, drag pans, double-click shows all"
    : `showing all ${grouped(frame.lanes)} requests · Ctrl + wheel zooms, drag pans`;
}

// The step in whose batch something at `time` was: the last that started before it.
function stepAt(frame, time) {
  const step = countBelow(frame.step_start, time) - 1;
  return step >= 0 && time <= frame.step_stop[step] + 1e-12 ? step : -1;
}

// The lanes that prefilled or spoke in a step.
function batchOf(frame, step) {
  const from = frame.step_start[step];
  const to = step + 1 < frame.step_start.length ? frame.step_start[step + 1] : Infinity;
  const lanes = new Set();
  for (let i = countBelow(frame.tick_time, from + 1e-12); i < frame.tick_time.length; i++) {
    if (frame.tick_time[i] > to) break;
    lanes.add(frame.tick_lane[i]);
  }
  for (let i = 0; i < frame.chunk_lane.length; i++) {
    if (frame.chunk_stop[i] > from && frame.chunk_stop[i] <= to) lanes.add(frame.chunk_lane[i]);
  }
  return lanes;
}

function drawLanes(ctx, timeline, picked) {
  const { frame, card } = timeline;
  const step = picked.over >= 0 ? picked.over : picked.step;
  const batch = step >= 0 && step < frame.step_start.length ? batchOf(frame, step) : null;
  drawStrip(ctx, timeline, step);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, timeline.top, timeline.width, timeline.bottom - timeline.top);
  ctx.clip();
  drawForks(ctx, timeline);
  drawStretches(ctx, timeline);
  drawChunks(ctx, timeline);
  drawTicks(ctx, timeline);
  drawJourneys(ctx, timeline);
  drawEnds(ctx, timeline);
  if (batch) {
    const left = timeline.x(frame.step_start[step]), right = timeline.x(frame.step_stop[step]);
    ctx.fillStyle = css(card.colors.paper, 0.72); // all but the batch steps back
    for (const lane of timeline.visible()) {
      if (!batch.has(lane)) ctx.fillRect(NAMES, timeline.y(lane), timeline.width, timeline.pitch - 1);
    }
    ctx.fillStyle = css(card.colors.ink, 0.12);
    ctx.fillRect(left, timeline.top, Math.max(1, right - left), timeline.bottom - timeline.top);
  }
  ctx.restore();
}

// One bar a step: height is tokens in the batch, decoded ones and rows of threads and frames below,
// prefilled ones on top.
function drawStrip(ctx, timeline, lit) {
  const { frame, card } = timeline, { colors } = card, count = frame.step_start.length;
  if (!count) return;
  const below = (i) => frame.step_decode[i] + frame.step_threads[i];
  let most = 1;
  for (let i = 0; i < count; i++) most = Math.max(most, below(i) + frame.step_prefill[i]);
  const decode = mix(colors.paper, colors.ink, 0.62), prefill = mix(colors.paper, colors.ink, 0.3);
  const first = Math.max(0, countBelow(frame.step_start, timeline.from) - 1);
  const last = countBelow(frame.step_start, timeline.to), scale = (STRIP_BASE - 6) / most;
  const bar = (i, color, low, high) => {
    const left = timeline.x(frame.step_start[i]), right = timeline.x(frame.step_stop[i]);
    const width = Math.max(0.6, right - left - (right - left > 4 ? 1 : 0));
    if (color) ctx.fillStyle = css(color);
    ctx.fillRect(left, STRIP_BASE - (low + high) * scale, width, high * scale);
    return left + width / 2;
  };
  ctx.fillStyle = css(decode); // once for all: a change of colour costs more than a bar
  for (let i = first; i < last; i++) bar(i, null, 0, below(i));
  ctx.fillStyle = css(prefill);
  for (let i = first; i < last; i++) if (frame.step_prefill[i]) bar(i, null, below(i), frame.step_prefill[i]);
  if (lit >= first && lit < last) {
    bar(lit, mix(colors.ink, colors.paper, 0.35), below(lit), frame.step_prefill[lit]);
    const middle = bar(lit, colors.ink, 0, below(lit));
    ctx.beginPath();
    ctx.moveTo(middle, STRIP_BASE + 2);
    ctx.lineTo(middle - 5, STRIP_BASE + 9);
    ctx.lineTo(middle + 5, STRIP_BASE + 9);
    ctx.fill();
  }
  ctx.fillStyle = css(colors.idle);
  ctx.fillRect(NAMES, STRIP_BASE, timeline.width - NAMES - GAP, 1);
  timeline.heading = ["Steps", `${grouped(most)} tokens`];
}

function drawForks(ctx, timeline) {
  const { frame, card } = timeline;
  ctx.strokeStyle = css(card.colors.faint);
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const lane of timeline.visible()) {
    const above = frame.above[timeline.at(lane)];
    if (above < 0) continue;
    const x = Math.round(timeline.x(frame.born[timeline.at(lane)])) + 0.5;
    ctx.moveTo(x, timeline.y(above) + timeline.pitch / 2);
    ctx.lineTo(x, timeline.y(lane) + timeline.pitch / 2);
  }
  ctx.stroke();
}

function drawStretches(ctx, timeline) {
  const { frame, card } = timeline, { colors } = card, tall = timeline.pitch;
  for (let i = 0; i < frame.stretch_lane.length; i++) {
    const lane = frame.stretch_lane[i], y = timeline.y(lane);
    if (y + tall < timeline.top || y > timeline.bottom || !timeline.known(lane)) continue;
    const left = timeline.x(frame.stretch_start[i]), right = timeline.x(frame.stretch_stop[i]);
    if (right < NAMES || left > timeline.width) continue;
    const color = timeline.color(lane), middle = Math.round(y + tall / 2);
    const state = frame.stretch_state[i], width = Math.max(1, right - left);
    if (state === QUEUED) {
      ctx.fillStyle = css(mix(color, colors.paper, 0.15));
      ctx.fillRect(left, middle - 1, width, 2);
    } else if (state === RUNNING) {
      ctx.fillStyle = css(mix(color, colors.paper, 0.76));
      const high = Math.max(4, tall * 0.5);
      ctx.fillRect(left, middle - high / 2, width, high);
    } else {
      const high = Math.max(4, tall * 0.5);
      ctx.strokeStyle = css(color);
      ctx.lineWidth = 1.5;
      if (state === 3) ctx.setLineDash([4, 3]);
      ctx.strokeRect(left + 1, middle - high / 2 + 0.5, Math.max(1, width - 2), high - 1);
      ctx.setLineDash([]);
    }
  }
}

function drawChunks(ctx, timeline) {
  const { frame } = timeline, high = Math.max(5, timeline.pitch * 0.8);
  for (let i = 0; i < frame.chunk_lane.length; i++) {
    const lane = frame.chunk_lane[i], y = timeline.y(lane) + timeline.pitch / 2;
    if (y + high < timeline.top || y - high > timeline.bottom || !timeline.known(lane)) continue;
    const left = timeline.x(frame.chunk_start[i]), right = timeline.x(frame.chunk_stop[i]);
    if (right < NAMES || left > timeline.width) continue;
    const width = Math.max(2, right - left - 1), color = timeline.color(lane);
    ctx.fillStyle = css(color);
    ctx.fillRect(left, y - high / 2, width, high);
    const text = grouped(frame.chunk_last[i] - frame.chunk_first[i]);
    const size = ctx.measureText(text).width;
    if (high < 12 || size > width - 6) continue;
    ctx.fillStyle = css(color);
    ctx.fillRect(left + width / 2 - size / 2 - 2, y - 6, size + 4, 12);
    ctx.fillStyle = css(textOn(color));
    ctx.textAlign = "center";
    ctx.fillText(text, left + width / 2, y + 0.5);
    ctx.textAlign = "left";
  }
}

// Ticks grow a little where steps are far apart.
function tickWidth(timeline) {
  const { step_start: start, step_stop: stop } = timeline.frame;
  const steps = start.length ? (stop[stop.length - 1] - start[0]) / start.length : 0;
  return clamp(steps / (timeline.to - timeline.from) * timeline.width * 0.06, 1.3, 3);
}

// A tick for each token; ticks on the same pixel of a lane are drawn once.
function drawTicks(ctx, timeline) {
  const { frame } = timeline, high = Math.max(4, timeline.pitch * 0.5);
  const wide = tickWidth(timeline);
  const last = new Map(), found = new Map();
  for (const lane of timeline.visible()) found.set(lane, []);
  for (let i = countBelow(frame.tick_time, timeline.from); i < frame.tick_time.length; i++) {
    if (frame.tick_time[i] > timeline.to) break;
    const lane = frame.tick_lane[i], row = found.get(lane);
    if (!row) continue;
    const x = Math.round(timeline.x(frame.tick_time[i]));
    if (last.get(lane) === x) continue;
    last.set(lane, x);
    row.push(x);
  }
  for (const [lane, row] of found) {
    if (!row.length) continue;
    const y = timeline.y(lane) + timeline.pitch / 2 - high / 2;
    ctx.fillStyle = css(timeline.color(lane));
    const isModelled = frame.modelled_lane ? frame.modelled_lane[timeline.at(lane)] : frame.modelled;
    const part = isModelled ? [[0, 0.4], [0.6, 0.4]] : [[0, 1]]; // modelled ticks are dashed
    for (const [from, share] of part) {
      for (const x of row) ctx.fillRect(x - wide / 2, y + from * high, wide, share * high);
    }
  }
}

// A dot where a request ended, with the reason beside it where there is room.
function drawEnds(ctx, timeline) {
  const { frame, card } = timeline, { colors } = card;
  for (const lane of timeline.visible()) {
    const place = timeline.at(lane), time = frame.ended[place];
    if (!(time >= timeline.from) || time > timeline.to) continue;
    const x = timeline.x(time), y = timeline.y(lane) + timeline.pitch / 2;
    const outcome = frame.outcomes[frame.outcome[place]], why = frame.whys[place];
    const size = clamp(timeline.pitch * 0.2, 2.5, 5);
    ctx.lineWidth = 2;
    ctx.beginPath();
    if (outcome === "rejected") {
      ctx.strokeStyle = css(colors.faint);
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size);
      ctx.lineTo(x - size, y + size);
      ctx.stroke();
    } else {
      ctx.arc(x, y, size, 0, 7);
      ctx.fillStyle = css(outcome === "finished" ? timeline.color(lane) : colors.paper);
      ctx.fill();
      ctx.strokeStyle = css(outcome === "finished" ? timeline.color(lane) : colors.faint);
      ctx.stroke();
    }
    const text = outcome === "finished" ? (USUAL.includes(why) ? "" : why) : [outcome, why].filter(Boolean).join(": ");
    const room = timeline.width - GAP - x - size - 8;
    if (timeline.pitch < 13 || room < 40) continue;
    ctx.fillStyle = css(colors.faint);
    ctx.fillText(fit(ctx, text, room), x + size + 6, y + 0.5);
  }
}

function laneWords(timeline, spot, step) {
  const { frame } = timeline, when = clockTime(spot.time, timeline.to);
  if (step >= 0) {
    const took = frame.step_stop[step] - frame.step_start[step];
    return [`Step ${grouped(frame.step_number[step] + 1)}: ${seconds(took)}`,
      `${grouped(frame.step_decode[step])} tokens decoded, ${grouped(frame.step_prefill[step])} prefilled` +
        (frame.step_threads[step] ? `, ${grouped(frame.step_threads[step])} rows of threads or frames` : ""),
      "click to keep its batch lit"];
  }
  if (spot.lane < 0 || !timeline.known(spot.lane) || spot.x < 0) return null;
  const place = timeline.at(spot.lane), lines = [frame.names[place]];
  for (let i = 0; i < frame.chunk_lane.length; i++) {
    if (frame.chunk_lane[i] !== spot.lane || spot.time < frame.chunk_start[i]
      || spot.time > frame.chunk_stop[i]) continue;
    const what = CHUNKS[frame.chunk_what[i]];
    lines.push(`${what} positions ${grouped(frame.chunk_first[i])}–${grouped(frame.chunk_last[i] - 1)}`);
  }
  for (let i = 0; i < frame.stretch_lane.length; i++) {
    if (frame.stretch_lane[i] !== spot.lane || spot.time < frame.stretch_start[i]
      || spot.time > frame.stretch_stop[i]) continue;
    const took = frame.stretch_stop[i] - frame.stretch_start[i];
    lines.push(`${frame.states[frame.stretch_state[i]]} for ${seconds(took)}`);
  }
  lines.push(...journeyWords(frame, spot));
  if (frame.ended[place] <= spot.time) {
    lines.push(`${frame.outcomes[frame.outcome[place]]} at ${clockTime(frame.ended[place])}` +
      (frame.whys[place] ? `: ${frame.whys[place]}` : ""));
  }
  return spot.time < 0 ? lines : [...lines, when]; // beside the names there is no time
}

export default { render };
