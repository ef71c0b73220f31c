// Figures at the cursor, with the whole run's beside them.

import { countBelow, grouped, worded } from "./numbers.js";

// `figures` with those that run told as they stood at `time`: [label, value at the cursor].
export function figuresAt(frame, figures, time) {
  const found = figures.map(([label, value]) => [label, value]);
  if (!frame.running || time >= frame.now) return found;
  for (const { place, unit, said, of, empty } of frame.running) {
    if (!found[place]) continue;
    const values = frame[`running${place}_value`], at = countBelow(frame[`running${place}_time`], time + 1e-9) - 1;
    const value = at >= 0 ? values[at] : empty ? NaN : 0, [label, whole] = found[place];
    const text = unit || !Number.isInteger(value) ? worded(value, unit) : grouped(value);
    const own = of ? `${text} of ${grouped(of)}` : text;
    if (own !== whole) found[place] = [`${label}, ${whole.split(" of ")[0]} ${said}`, own];
  }
  return found;
}
