// A view without a server: a model that the ES module cannot tell from a host's, and a slider.
// Views on one page share the time cursor and the chosen owner through events on the document.

import { css, palette } from "../canvas/colors.js";
import { make } from "../page/nodes.js";
import { clamp, clockTime, countBelow } from "../canvas/numbers.js";

class StillModel {
  constructor(values) {
    this.values = values;
    this.heard = {};
  }

  get(name) { return this.values[name]; }

  on(event, act) { (this.heard[event] ||= []).push(act); }

  off(event, act) { this.heard[event] = (this.heard[event] || []).filter((a) => a !== act); }

  set(name, value) {
    this.values[name] = value;
    for (const act of this.heard[`change:${name}`] || []) act();
  }

  save_changes() {}
}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Each frame's arrays came as the difference to the frame before (widgets/canvas/drawing.py).
function undoDifferences(data, sizes, bodies) {
  const frames = [];
  let offset = 0, before = new Uint8Array(0);
  sizes.forEach((size, i) => {
    const frame = data.slice(offset, offset + size), arrays = frame.subarray(bodies[i]);
    const same = Math.min(arrays.length, before.length);
    for (let k = 0; k < same; k++) arrays[k] ^= before[k];
    frames.push(frame);
    before = arrays;
    offset += size;
  });
  return frames;
}

export async function replay(drawing, place, payload) {
  const host = document.getElementById(place);
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const frames = undoDifferences(await inflate(payload.data), payload.sizes, payload.bodies);
  const end = payload.duration, times = payload.times;
  const latest = (moments, time) => Math.max(0, countBelow(moments, time + 1e-9) - 1);
  const at = (time) => latest(times, time), none = [];
  const told = payload.figures.map(([time]) => time);
  const figures = (time) => payload.figures[latest(told, time)]?.[1] || none;
  const begin = clamp(Number(document.body.dataset.at ?? end), 0, end); // a page may begin elsewhere
  const model = new StillModel({
    frame: frames[at(begin)], figures: figures(begin), cursor: begin, chosen: "", window: {}, seek: -1,
    is_dark: payload.dark ?? preferred.matches, options: { ...payload.options, duration: end },
  });
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(`workbench-${name}`, { detail }));
  drawing.render({ model, el: host });
  if (payload.dark === null) {
    preferred.addEventListener("change", () => model.set("is_dark", preferred.matches));
  }
  const bar = payload.bar ? openBar(host, model, end, (time) => tell("cursor", time)) : () => {};
  bar(begin);
  document.addEventListener("workbench-cursor", ({ detail }) => {
    const time = clamp(detail, 0, end), frame = frames[at(time)];
    if (frame !== model.get("frame")) model.set("frame", frame);
    if (figures(time) !== model.get("figures")) model.set("figures", figures(time));
    model.set("cursor", time);
    bar(time);
  });
  document.addEventListener("workbench-chosen", ({ detail }) => {
    if (detail !== model.get("chosen")) model.set("chosen", detail);
  });
  model.on("change:seek", () => tell("cursor", model.get("seek")));
  model.on("change:chosen", () => tell("chosen", model.get("chosen")));
}

// Play button, slider and time under a view; returns what shows a moment on it.
function openBar(host, model, end, seek) {
  host.querySelector(".pw").style.borderRadius = "6px 6px 0 0";
  const bar = make("div", "pw", host);
  bar.style.cssText = "flex-direction:row;gap:12px;align-items:center;padding:0 16px 12px;border-radius:0 0 6px 6px";
  const paint = () => {
    const colors = palette(model.get("options"), model.get("is_dark"));
    for (const name of ["paper", "ink", "line", "raised"]) bar.style.setProperty(`--${name}`, css(colors[name]));
    bar.style.setProperty("--font", colors.font);
  };
  model.on("change:is_dark", paint);
  paint();
  const play = make("button", "", bar, "Play");
  play.style.width = "72px";
  play.type = "button";
  const slider = make("input", "", bar);
  Object.assign(slider, { type: "range", min: 0, max: 1000, value: 1000 });
  slider.setAttribute("aria-label", "Time");
  slider.style.cssText = "flex:1;accent-color:var(--ink)";
  const text = make("span", "", bar);
  text.style.cssText = "min-width:72px;text-align:right;font-variant-numeric:tabular-nums";
  slider.oninput = () => seek(slider.value / 1000 * end);
  let started = null;
  const tick = (now) => {
    if (!started) return;
    const time = started.from + (now - started.at) / 1000 * Math.max(end / 20, 1e-9);
    seek(Math.min(end, time));
    if (time >= end) return stop();
    requestAnimationFrame(tick);
  };
  const stop = () => {
    started = null;
    play.textContent = "Play";
  };
  play.onclick = () => {
    if (started) return stop();
    const here = model.get("cursor");
    started = { at: performance.now(), from: here >= end ? 0 : here };
    play.textContent = "Pause";
    requestAnimationFrame(tick);
  };
  return (time) => {
    slider.value = end ? time / end * 1000 : 0;
    text.textContent = clockTime(time, end);
  };
}
