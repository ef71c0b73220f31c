// Journeys of requests over a fleet: when a request's cache is on its way from replica to replica,
// and where the request is at a moment.

import { css } from "../../canvas/colors.js";
import { seconds, worded } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { NAMES } from "../../canvas/timeline.js";

const ROUTER = "router";

// A line under the lane while a cache travels, its head where it arrives, and the replica's name.
export function drawJourneys(ctx, timeline) {
  const { frame, card } = timeline, tall = timeline.pitch;
  for (let i = 0; i < frame.sent_lane.length; i++) {
    if (frame.places[frame.sent_source[i]].startsWith(ROUTER)) continue;
    const lane = frame.sent_lane[i], y = timeline.y(lane);
    if (y + tall < timeline.top || y > timeline.bottom || !timeline.known(lane)) continue;
    const left = timeline.x(frame.sent_start[i]), right = timeline.x(frame.sent_stop[i]);
    if (right < NAMES || left > timeline.width) continue;
    const foot = Math.round(y + tall * 0.86);
    ctx.fillStyle = css(card.colors.ink);
    ctx.fillRect(left, foot - 1, Math.max(1, right - left), 2);
    ctx.beginPath();
    ctx.moveTo(right + 2, foot);
    ctx.lineTo(right - 3, foot - 3.5);
    ctx.lineTo(right - 3, foot + 3.5);
    ctx.fill();
    if (tall < 22) continue;
    ctx.fillStyle = css(card.colors.faint);
    ctx.fillText(fit(ctx, frame.places[frame.sent_target[i]], 150), right + 6, foot + 0.5);
  }
}

// Where a lane's request is at a moment, and what of it is on its way.
export function journeyWords(frame, spot) {
  const lines = [];
  let at = -1;
  for (let i = 0; i < frame.sent_lane.length; i++) {
    if (frame.sent_lane[i] !== spot.lane || frame.sent_start[i] > spot.time) continue;
    const from = frame.places[frame.sent_source[i]], to = frame.places[frame.sent_target[i]];
    if (frame.sent_stop[i] <= spot.time) at = frame.sent_target[i];
    else {
      const took = seconds(frame.sent_stop[i] - frame.sent_start[i]);
      lines.push(`${worded(frame.sent_bytes[i], "B")} on the way from ${from} to ${to} for ${took}`);
    }
  }
  return at >= 0 ? [`on ${frame.places[at]}`, ...lines] : lines;
}
