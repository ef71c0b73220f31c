// What the axis of the threads counts: seconds, steps of the engine, or tokens along the path.

import { countBelow, grouped, ticks } from "../../canvas/numbers.js";
import { TIME_SCALE } from "../../canvas/timeline.js";

const wholeTicks = (low, high, count) => ticks(low, high, count).filter((value) => value === Math.round(value));

// The scale of that name for whatever frame the card shows.
export function threadScale(card, name) {
  if (name === "step") {
    return {
      name, fades: true, least: 3, ticks: wholeTicks,
      end: (frame) => frame.step_total,
      at: (time) => {
        const { frame } = card, passed = countBelow(frame.step_time, time + 1e-12);
        return passed === frame.step_time.length ? frame.step_total : passed * frame.step_every;
      },
      time: (x) => {
        const { frame } = card, place = Math.floor(x / frame.step_every) - 1;
        return place < 0 ? 0 : frame.step_time[Math.min(place, frame.step_time.length - 1)];
      },
      word: (value) => `step ${grouped(value)}`,
    };
  }
  if (name === "place") {
    return {
      name, fades: false, least: 3, ticks: wholeTicks,
      end: (frame) => frame.most,
      at: (time) => {
        const { frame } = card, passed = countBelow(frame.front_time, time + 1e-12);
        return passed ? frame.front_place[passed - 1] : 0;
      },
      time: (x) => {
        const { frame } = card, place = countBelow(frame.front_place, x);
        return frame.front_time.length ? frame.front_time[Math.min(place, frame.front_time.length - 1)] : 0;
      },
      word: (value) => `${grouped(value)} tokens`,
    };
  }
  return TIME_SCALE;
}

// From where to where a lane reaches on an axis.
export function laneReach(frame, place, axis) {
  if (axis === "place") return [frame.born_place[place], frame.last_place[place]];
  const over = frame.ended[place] <= frame.now;
  if (axis === "step") return [frame.born_step[place], over ? frame.ended_step[place] : frame.step_total];
  return [frame.born[place], over ? frame.ended[place] : frame.now];
}
