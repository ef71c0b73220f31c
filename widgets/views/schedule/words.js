// What the pointer says over a schedule.

import { clockTime, grouped, seconds, worded } from "../../canvas/numbers.js";
import { causeOf, gapAt, launchWords } from "./launches.js";
import { memoryAt } from "./memory.js";

const TAG_LINES = 6;
const UNSAID = ["mb", "task", "grade"];

export function spanWords(t, i) {
  const { frame } = t, kind = frame.kinds[frame.span_kind[i]], task = frame.span_task[i];
  const start = frame.span_start[i], stop = frame.span_stop[i], lane = frame.names[frame.span_row[i]];
  if (frame.span_count[i] > 1) {
    return [`${grouped(frame.span_count[i])} spans, the longest ${kind}`,
      `${lane}: ${seconds(stop - start)} together from ${seconds(start)}`, "zoom in to see each"];
  }
  const lines = [task < 0 ? kind : `${kind}, ${frame.tasks[task]}`,
    `${lane}: ${seconds(stop - start)}`, `from ${clockTime(start, stop)} to ${clockTime(stop)}`];
  lines.push(...launchWords(frame, i));
  if (frame.layers > 1 && frame.span_layer[i]) lines[0] += " (modelled)";
  const error = frame.span_error[i];
  if (Number.isFinite(error)) {
    lines.push(`modelled ${seconds((stop - start) / (1 + error))}: took ${worded(Math.abs(error), "%")} ${error < 0 ? "less" : "more"}`);
  }
  const flops = frame.span_flops[i], bytes = frame.span_bytes[i], took = stop - start;
  if (flops > 0) lines.push(`${worded(flops, "FLOP")}${took > 0 ? `, ${worded(flops / took, "FLOP/s")}` : ""}`);
  if (bytes > 0) lines.push(`${worded(bytes, "B")}${took > 0 ? `, ${worded(bytes / took, "B/s")}` : ""}`);
  const said = (frame.tags[frame.span_tag[i]] || "").split(" ").filter((word) => word.includes("="))
    .map((word) => word.split(/=(.*)/s)).filter(([key]) => !UNSAID.includes(key));
  return [...lines, ...said.slice(0, TAG_LINES).map(([key, value]) => `${key}: ${value}`)];
}

// Over a gap: how long the lane had nothing to do, where every span is here to tell.
export function gapWords(t, spot) {
  const { frame } = t;
  if (spot.time < frame.begin || spot.time > frame.now) return null;
  let from = frame.begin, to = frame.now;
  for (let i = 0; i < frame.span_row.length; i++) {
    if (frame.span_row[i] !== spot.lane || frame.span_layer[i] !== (frame.layers > 1 ? 0 : frame.span_layer[i])) continue;
    if (frame.span_stop[i] <= spot.time) from = Math.max(from, frame.span_stop[i]);
    else if (frame.span_start[i] >= spot.time) to = Math.min(to, frame.span_start[i]);
  }
  const lane = frame.names[spot.lane], gap = gapAt(frame, spot);
  const why = gap < 0 ? [] : [causeOf(frame, gap, to - from)];
  const idle = frame.turns ? "does not run" : "idle";
  if (frame.span_row.length < frame.total) return [`${lane}: ${idle}`, clockTime(spot.time, t.to), ...why];
  return [`${lane}: ${idle} for ${seconds(to - from)}`, `from ${clockTime(from, to)} to ${clockTime(to)}`, ...why];
}

export function memoryWords(t, row, time) {
  const { frame } = t, held = memoryAt(frame, row, time), total = held.reduce((a, b) => a + b, 0);
  const lines = [`${frame.names[row]}: ${worded(total, "B")} at ${clockTime(time, t.to)}`];
  frame.memory_kinds.forEach((kind, i) => { if (held[i] > 0) lines.push(`${kind}: ${worded(held[i], "B")}`); });
  if (frame.memory_limit) lines.push(`${worded(total / frame.memory_limit, "%")} of the limit`);
  return lines;
}
