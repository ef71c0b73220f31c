// What ties threads together: forks, reads, ends, marks, and the critical path under the lanes.

import { css, mix } from "../../canvas/colors.js";
import { clamp } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { GAP } from "../../canvas/timeline.js";
import { readable } from "../../canvas/token_text.js";
import { laneReach } from "./scales.js";

// pixels from an edge or a mark that still mean it
export const FORK = 0;
const NEAR = 7;

const ORDINARY = "the model ended it"; // a finished thread's dot says so; hover has the words

function edgeX(t, i, axis) { return Math.round(t.x(t.frame[`edge_${axis}`][i])) + 0.5; }

// Bold under the lanes, with the forks and reads it came through.
export function drawPath(ctx, t, lanes, axis) {
  const { frame, card } = t;
  const names = { time: ["path_start", "path_stop"], step: ["path_start_step", "path_stop_step"], place: ["path_first", "path_last"] };
  const [from, to] = names[axis].map((name) => frame[name]);
  const foot = (lane) => Math.round(lanes.middle(t, lane) + lanes.high(t) / 2 + 2);
  ctx.fillStyle = css(card.colors.ink);
  for (let i = 0; i < frame.path_lane.length; i++) {
    const left = clamp(t.x(from[i]), t.left, t.width), right = clamp(t.x(to[i]), t.left, t.width);
    const y = foot(frame.path_lane[i]);
    if (right > left) ctx.fillRect(left, y, right - left, 3);
    if (i === 0 || t.x(from[i]) < t.left || t.x(from[i]) > t.width) continue;
    const above = foot(frame.path_lane[i - 1]);
    ctx.fillRect(t.x(from[i]) - 1.5, Math.min(y, above), 3, Math.abs(y - above) + 3);
  }
}

// Forks leave the parent with a dot, reads enter the reader with an arrow.
export function drawEdges(ctx, t, lanes, axis, hovered) {
  const { frame, card } = t, { colors } = card;
  for (let i = 0; i < frame.edge_to.length; i++) {
    const x = edgeX(t, i, axis), to = frame.edge_to[i], source = frame.edge_source[i];
    if (x < t.left - 4 || x > t.width || !t.known(to) || !t.known(source)) continue;
    const from = lanes.middle(t, source), end = lanes.middle(t, to), isFork = frame.edge_kind[i] === FORK;
    if (Math.max(from, end) < t.top || Math.min(from, end) > t.bottom) continue;
    const isLate = frame.edge_time[i] > card.cursor + 1e-12;
    const base = mix(colors.hues[frame.hue[t.at(isFork ? to : source)]], colors.ink, 0.25);
    const color = css(mix(base, colors.paper, isLate || lanes.isDim(to, t) && lanes.isDim(source, t) ? 0.7 : 0));
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = i === hovered ? 2.5 : 1.5;
    const down = end > from ? 1 : -1, half = lanes.high(t) / 2, size = clamp(half, 2.5, 5);
    ctx.beginPath();
    ctx.moveTo(x, from + down * half);
    ctx.lineTo(x, end - down * half - (isFork ? 0 : down * size));
    ctx.stroke();
    ctx.beginPath();
    if (isFork) ctx.arc(x, from, clamp(half * 0.5, 2, 4), 0, 7);
    else {
      ctx.moveTo(x, end - down * half);
      ctx.lineTo(x - size * 0.8, end - down * (half + size * 1.4));
      ctx.lineTo(x + size * 0.8, end - down * (half + size * 1.4));
    }
    ctx.fill();
    if (!isFork) continue;
    ctx.beginPath();
    ctx.arc(x, from, clamp(half * 0.5, 2, 4), 0, 7);
    ctx.strokeStyle = css(colors.paper);
    ctx.lineWidth = 1;
    ctx.stroke();
  }
}

// A stump where a thread was pruned, a dot where it finished, hollow where it was aborted.
export function drawThreadEnds(ctx, t, lanes, axis) {
  const { frame, card } = t, { colors } = card, high = lanes.high(t);
  for (const lane of t.visible()) {
    const place = t.at(lane), outcome = frame.outcomes[frame.outcome[place]];
    if (!(frame.ended[place] <= card.cursor + 1e-12)) continue;
    const x = t.x(laneReach(frame, place, axis)[1]), y = lanes.middle(t, lane);
    if (x < t.left - 1 || x > t.width) continue;
    const size = clamp(t.pitch * 0.15, 2.5, 5);
    let wide = size;
    if (outcome === "pruned") {
      wide = 12;
      ctx.fillStyle = css(mix(colors.idle, colors.faint, 0.3));
      ctx.fillRect(x, y - high / 2, wide, high);
      ctx.fillStyle = css(colors.faint);
      ctx.fillRect(x + wide - 3, y - high / 2 - 1, 3, high + 2);
    } else if (outcome !== "joined") {
      ctx.beginPath();
      ctx.arc(x, y, size, 0, 7);
      ctx.fillStyle = css(outcome === "finished" ? t.color(lane) : colors.paper);
      ctx.fill();
      ctx.strokeStyle = css(outcome === "finished" ? colors.paper : colors.faint);
      ctx.lineWidth = 1.5;
      ctx.stroke();
    }
    const text = outcome === "finished" ? frame.whys[place] : [outcome, frame.whys[place]].filter(Boolean).join(": ");
    const room = t.width - GAP - x - wide - 12;
    if (high < 9 || room < 40 || outcome === "joined" || text === ORDINARY) continue;
    ctx.fillStyle = css(colors.faint);
    ctx.fillText(fit(ctx, readable(text), room), x + wide + 8, y + 0.5);
  }
}

// A small flag for what was said to a thread, an answer, a verdict: its words come on hover.
export function drawMarks(ctx, t, lanes, axis) {
  const { frame, card } = t, { colors } = card;
  for (let i = 0; i < frame.mark_lane.length; i++) {
    const [name] = frame.mark_texts[i], lane = frame.mark_lane[i];
    if (name === "join" || name === "fork" || name === "prune" || !t.known(lane)) continue;
    const x = t.x(frame[`mark_${axis}`][i]), y = lanes.middle(t, lane) - lanes.high(t) / 2;
    if (x < t.left || x > t.width || y < t.top - 6 || y > t.bottom) continue;
    ctx.fillStyle = css(frame.mark_time[i] > card.cursor + 1e-12 ? mix(colors.ink, colors.paper, 0.7) : colors.ink);
    ctx.fillRect(x - 0.75, y - 4, 1.5, lanes.high(t) + 4);
    ctx.beginPath();
    if (name === "answer") ctx.roundRect(x - 4, y - 6, 8, 8, 2);
    else {
      ctx.moveTo(x - 0.75, y - 5);
      ctx.lineTo(x + 7, y - 2);
      ctx.lineTo(x - 0.75, y + 1);
    }
    ctx.fill();
  }
}

// The edge nearest to the pointer in or across its lane, -1 where there is none.
export function edgeNear(t, lanes, axis, spot) {
  const { frame } = t;
  let best = -1, least = NEAR;
  for (let i = 0; i < frame.edge_to.length; i++) {
    const away = Math.abs(edgeX(t, i, axis) - spot.x);
    if (away >= least) continue;
    const ends = [frame.edge_to[i], frame.edge_source[i]].map((lane) => lanes.middle(t, lane));
    if (spot.y < Math.min(...ends) - 6 || spot.y > Math.max(...ends) + 6) continue;
    [best, least] = [i, away];
  }
  return best;
}

export function marksNear(t, axis, spot) {
  const { frame } = t, found = [];
  for (let i = 0; i < frame.mark_lane.length && found.length < 4; i++) {
    if (frame.mark_lane[i] !== spot.lane || Math.abs(t.x(frame[`mark_${axis}`][i]) - spot.x) > NEAR) continue;
    const [name, text] = frame.mark_texts[i];
    found.push(text ? `${name}: ${text}` : name);
  }
  return found;
}
