// Numbers: as text with units, as round ticks, and within bounds.

export function three(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size < 1e-4) return String(Number(value.toPrecision(3)).toExponential());
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return String(Number(value.toFixed(digits)));
}

// Seconds with the unit that fits `scale`, so that the ticks of one axis agree.
// `step`: apart from its neighbours by so much, so digits enough to tell them apart.
export function seconds(value, scale = Math.abs(value), step = 0) {
  const units = [[60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  // On an axis of minutes what is less than one is in seconds: 50.7 s, not 0.845 min.
  const fits = scale >= 60 && value && Math.abs(value) < 59.97 ? Math.min(scale, 59) : scale;
  const [size, name] = units.find(([least]) => fits >= least * 0.9995) || units[1];
  const close = step > 0 && step < 0.01 * Math.abs(value);
  const digits = close ? clamp(Math.ceil(-Math.log10(step / size) - 1e-9), 0, 6) : 0;
  return `${close ? (value / size).toFixed(digits) : three(value / size)} ${name}`;
}

// A moment of a run as a clock tells it: 2:16.2 from a minute on, else seconds. `scale` as there.
export function clockTime(value, scale = Math.abs(value), step = 0) {
  if (scale < 60 * 0.9995) return seconds(value, scale, step);
  const digits = step > 0 && step < 0.1 ? clamp(Math.ceil(-Math.log10(step) - 1e-9), 1, 6) : 1;
  const whole = Number(value.toFixed(digits)), hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) - 60 * hours, rest = (whole % 60).toFixed(digits).padStart(digits + 3, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

// A moment beside the newest one, `end`: −12.4 s, or now.
export function ago(value, end) {
  const before = end - value;
  return before < 0.05 ? "now" : `−${seconds(Number(before.toFixed(1)))}`;
}

const SCALES = {
  "B": [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
  "": [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]],
};

// A value with its unit as `theme.figure` writes it; `scale` as in `seconds`.
export function worded(value, unit = "", scale = Math.abs(value)) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (unit === "s") return seconds(value, scale);
  if (unit === "%") return `${three(value * 100)} %`;
  if (!unit && (scale < 1e4 || !value)) return three(value);
  const steps = SCALES[unit]
    || ["", "k", "M", "G", "T", "P", "E"].map((name, i) => [1e3 ** i, name + unit]);
  const [size, name] = steps.findLast(([least]) => scale >= least * 0.9995) || steps[0];
  return `${three(value / size)} ${name}`;
}

export function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

// Round values from `low` to `high`, about `count` of them.
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

// Round moments: from a minute on they are round in minutes.
export function timeTicks(low, high, count) {
  const unit = high >= 60 ? 60 : 1;
  return ticks(low / unit, high / unit, count).map((value) => value * unit);
}

// The number of sorted `values` below `wanted`.
export function countBelow(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
