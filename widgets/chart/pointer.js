// What a person does on a chart: read, choose an owner, seek, zoom along x by dragging or by keys.

import { clamp, clockTime, worded } from "../canvas/numbers.js";

const MOST_READ = 10; // lines of a reading; with more, those of the plot under the pointer
// pixels a press may wander as a click, and of a band to zoom into
const STEADY = 4;
const LEAST_BAND = 6;
export const TIME = "time";

export function pointerActs(chart) {
  const { card } = chart;
  let press = null, pinned = "";
  card.onUnpinned(() => { pinned = ""; });
  const leave = (event) => {
    chart.spot = null;
    card.hint(null, event);
    card.set("chosen", pinned);
    card.schedule();
  };
  return {
    pointerdown(x, y, event) {
      const plot = chart.laid.find((each) => each.has(x, y));
      if (!event.button && chart.promises.press(x, y)) return event.target.setPointerCapture(event.pointerId);
      if (!plot || event.button) return;
      press = { plot, x };
      event.target.setPointerCapture(event.pointerId);
    },
    pointermove(x, y, event) {
      if (chart.promises.held) return chart.promises.drag(x);
      event.target.style.cursor = chart.promises.near(x, y) ? "ew-resize" : "";
      if (press && (chart.band || Math.abs(x - press.x) > STEADY)) {
        const { plot } = press, within = (value) => clamp(value, plot.left, plot.right);
        chart.band = { plot, from: within(press.x), to: within(x) };
        card.hint(null, event);
        return card.schedule();
      }
      const plot = chart.laid.find((each) => each.has(x, y));
      if (!plot) return leave(event);
      const at = clamp(x, plot.left, plot.right), owner = plot.spec.timed ? -1 : plot.nearest(x, y);
      chart.spot = { plot: plot.place, x: at, owner };
      if (!plot.spec.timed) card.set("chosen", owner < 0 ? pinned : plot.owner(owner));
      card.hint(plot.spec.timed ? timeWords(chart, plot, at) : ownerWords(plot, owner), event);
      return card.schedule();
    },
    pointerup() {
      if (chart.promises.held) return chart.promises.release();
      const { band } = chart, pressed = press;
      [press, chart.band] = [null, null];
      card.schedule();
      if (!pressed) return;
      if (band) {
        const [from, to] = [band.from, band.to].sort((a, b) => a - b).map((x) => valueAt(band.plot, x));
        if (Math.abs(band.to - band.from) >= LEAST_BAND) chart.zoom(zoomKey(band.plot), [from, to]);
      } else if (pressed.plot.spec.timed) {
        card.set("seek", clamp(valueAt(pressed.plot, pressed.x), 0, pressed.plot.spec.right));
      } else {
        const owner = pressed.plot.owner(chart.spot?.owner);
        pinned = pinned === owner ? "" : owner;
        card.set("chosen", pinned);
      }
    },
    pointercancel() { [press, chart.band, chart.promises.held] = [null, null, null]; },
    pointerleave(x, y, event) { if (!press) leave(event); },
    dblclick() { chart.showAll(); },
  };
}

export function valueAt(plot, x) {
  return plot.from + (x - plot.left) / (plot.right - plot.left) * (plot.to - plot.from);
}

// The moment under the pointer and what every line is then.
function timeWords(chart, plot, x) {
  const time = valueAt(plot, x), count = chart.laid.reduce((sum, each) => sum + each.lines.length, 0);
  const lines = [clockTime(time, plot.to, (plot.to - plot.from) / 400)];
  for (const each of count > MOST_READ ? [plot] : chart.laid) {
    for (const line of each.lines) {
      const value = each.value(line, time);
      if (value !== null) lines.push(`${line.name}: ${worded(value, each.spec.y_unit)}`);
    }
  }
  return lines.length > 1 ? lines : null;
}

function ownerWords(plot, place) {
  const { spec, lines: [line] } = plot;
  if (place < 0) return null;
  return [plot.owner(place), `${spec.title}: ${worded(line.xs[place], spec.x_unit)}`,
    `${worded(line.ys[place], spec.y_unit)} were as quick`];
}

// Plus and minus zoom about the middle, arrows move along what is zoomed, 0 shows all.
export function chartKey(chart, event) {
  const plot = chart.laid[0];
  if (!plot || chart.promises.key(event)) return;
  const { from, to, spec: { right } } = plot, span = to - from, key = zoomKey(plot);
  const show = (start, size) => {
    const low = clamp(start, 0, Math.max(0, right - size));
    chart.zoom(key, size >= right ? null : [low, low + size]);
  };
  const around = (size) => show((from + to) / 2 - size / 2, size);
  const closer = () => around(Math.max(span * 0.7, right * 1e-6));
  const acts = {
    "+": closer, "=": closer, "-": () => around(span / 0.7), 0: () => chart.showAll(),
    ArrowLeft: () => span < right && show(from - span / 5, span),
    ArrowRight: () => span < right && show(from + span / 5, span),
  };
  if (!acts[event.key] || (event.key.startsWith("Arrow") && span >= right)) return;
  event.preventDefault();
  event.stopPropagation();
  acts[event.key]();
}

// Plots over time are zoomed together, any other by itself.
export function zoomKey(plot) { return plot.spec.timed ? TIME : plot.place; }
