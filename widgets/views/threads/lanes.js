// The lanes of the threads: each one's life as a band, its tokens as ticks or, with room, as text.

import { css, mix, pixel, textOn } from "../../canvas/colors.js";
import { clamp, countBelow } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { GAP } from "../../canvas/timeline.js";
import { DECODER, Tokens, outlineToken, readable, surety } from "../../canvas/token_text.js";
import { laneReach } from "./scales.js";

// modelled ticks are dashed
const WHOLE_PART = [[-0.5, 1]];
const MODELLED_PARTS = [[-0.5, 0.4], [0.1, 0.4]];
const SHADES_OF_TOKEN = 10;
const LIKELY_STEPS = 64;
const LEAST_LIKELY = -8;

// Shade of a token by its log-probability, looked up.
const SHADE_AT = Uint8Array.from({ length: LIKELY_STEPS + 1 }, (_, i) =>
  Math.round((surety(LEAST_LIKELY * (1 - i / LIKELY_STEPS)) - 0.16) / 0.84 * (SHADES_OF_TOKEN - 1)));

function shadeOf(logprob) {
  return SHADE_AT[Math.round(clamp(1 - logprob / LEAST_LIKELY, 0, 1) * LIKELY_STEPS)];
}

export class ThreadLanes {
  constructor(card) {
    this.card = card;
    this.buckets = Array.from({ length: SHADES_OF_TOKEN }, () => []);
    this.refused = [];
  }

  // A new frame: where each lane's tokens lie, and their texts.
  read(frame) {
    this.spans = new Map();
    const lanes = frame.token_lane || [];
    for (let i = 0; i < lanes.length;) {
      const from = i, lane = lanes[i];
      while (i < lanes.length && lanes[i] === lane) i += 1;
      this.spans.set(lane, [from, i]);
    }
    this.isBinned = Boolean(frame.token_count);
    this.texts = this.isBinned ? [] : new Array(lanes.length);
    this.reading = null;
  }

  // The tokens that can be read as text: those of one lane where the others came as columns.
  get tokens() {
    const { frame } = this.card;
    return this.reading ??= new Tokens(frame.read_lane ? {
      token_lane: frame.read_lane, token_time: frame.read_time, token_logprob: frame.read_logprob,
      token_accepted: frame.read_accepted, token_stop: frame.read_stop, text: frame.read_text,
    } : frame);
  }

  retheme() {
    const { colors } = this.card, shades = Array.from({ length: SHADES_OF_TOKEN }, (_, s) =>
      0.16 + 0.84 * s / (SHADES_OF_TOKEN - 1));
    this.grey = shades.map((share) => mix(colors.paper, mix(colors.idle, colors.faint, 0.25), share));
    this.table = [0, 0.7].map((dim) => colors.hues.map((hue) =>
      shades.map((share) => mix(colors.paper, mix(hue, colors.paper, dim), share))));
    this.styles = new Map();
  }

  style(color) {
    let found = this.styles.get(color);
    if (!found) this.styles.set(color, found = css(color));
    return found;
  }

  isDim(lane, t) {
    const { chosen } = this.card, { names } = t.frame;
    return Boolean(chosen) && names[t.at(lane)] !== chosen && names.includes(chosen);
  }

  // A lane that was pruned is grey from then on.
  isPruned(place, t) {
    const { frame } = t;
    return frame.outcomes[frame.outcome[place]] === "pruned" && frame.ended[place] <= this.card.cursor + 1e-12;
  }

  // The shades of a lane's tokens.
  shades(lane, t) {
    const place = t.at(lane);
    return this.isPruned(place, t) ? this.grey : this.table[this.isDim(lane, t) ? 1 : 0][t.frame.hue[place]];
  }

  high(t) { return Math.min(20, Math.max(3, t.pitch - (t.pitch < 12 ? 3 : 10))); }
  middle(t, lane) { return t.y(lane) + (t.pitch - (t.pitch < 12 ? 0 : 4)) / 2; }

  show(ctx, t, axis, hovered) {
    t.readable = 0;
    for (const lane of t.visible()) {
      const shades = this.shades(lane, t);
      this.band(ctx, t, axis, lane, shades);
    }
    this.waits(ctx, t, axis);
    if (this.isBinned && !ctx.isRecording) this.strips(ctx, t, axis);
    for (const lane of t.visible()) this.row(ctx, t, axis, lane, hovered);
  }

  // Columns of tokens as pixels: a row of an image for each lane, stretched to the lane's height.
  strips(ctx, t, axis) {
    const { frame } = t, { ratio } = t.surface, wide = Math.max(1, Math.round((t.width - t.left - GAP) * ratio));
    const shown = [...t.visible()].filter((lane) => this.spans.has(lane)), high = this.high(t);
    const sheet = this.sheet ??= document.createElement("canvas");
    if (!shown.length) return;
    if (sheet.width !== wide || sheet.height !== shown.length) [sheet.width, sheet.height] = [wide, shown.length];
    const brush = sheet.getContext("2d"), image = brush.createImageData(wide, shown.length);
    const pixels = new Uint32Array(image.data.buffer), at = frame[`token_${axis}`], last = frame[`until_${axis}`];
    const unit = axis === "time" ? 0 : 1, scale = wide / (t.to - t.from || 1), grey = pixel(this.card.colors.idle);
    shown.forEach((lane, row) => {
      const [first, stop] = this.spans.get(lane), shades = this.shades(lane, t).map(pixel), base = row * wide;
      for (let i = first; i < stop; i++) {
        const from = Math.max(0, Math.floor((at[i] - t.from) * scale));
        const to = Math.min(wide, Math.max(from + 1, Math.round((last[i] + unit - t.from) * scale)));
        const color = frame.token_accepted[i] ? shades[shadeOf(frame.token_logprob[i])] : grey;
        for (let x = from; x < to; x++) pixels[base + x] = color;
      }
    });
    brush.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    const parts = frame.modelled ? MODELLED_PARTS : WHOLE_PART;
    shown.forEach((lane, row) => {
      for (const [from, share] of parts) {
        ctx.drawImage(sheet, 0, row, wide, 1, t.left, this.middle(t, lane) + from * high, wide / ratio, share * high);
      }
    });
    ctx.imageSmoothingEnabled = true;
  }

  band(ctx, t, axis, lane, shades) {
    const place = t.at(lane), [from, to] = laneReach(t.frame, place, axis);
    const left = Math.max(t.x(from), t.left), right = Math.min(t.x(to), t.width), high = this.high(t);
    if (right <= left) return;
    ctx.fillStyle = this.style(shades[0]);
    ctx.fillRect(left, this.middle(t, lane) - high / 2, Math.max(1, right - left), high);
  }

  // Where a thread waited its band is a thin line.
  waits(ctx, t, axis) {
    const { frame } = t, high = this.high(t) + 1;
    const thin = (lane, from, to) => {
      const left = Math.max(t.left, t.x(from)), right = Math.min(t.width, t.x(to)), y = this.middle(t, lane);
      if (right - left < 0.5 || y < t.top - high || y > t.bottom + high || !t.known(lane)) return;
      ctx.fillStyle = this.style(this.card.colors.paper);
      ctx.fillRect(left, y - high / 2, right - left, high);
      ctx.fillStyle = this.style(this.shades(lane, t)[4]);
      ctx.fillRect(left, Math.round(y) - 1, right - left, 2);
    };
    if (axis === "place") { // it goes on where the thread it read had got to
      for (let i = 0; i < frame.edge_to.length; i++) {
        if (frame.edge_place[i] > frame.edge_before[i]) thin(frame.edge_to[i], frame.edge_before[i], frame.edge_place[i]);
      }
      return;
    }
    const [start, stop] = axis === "step" ? [frame.wait_start_step, frame.wait_stop_step] : [frame.wait_start, frame.wait_stop];
    for (let i = 0; i < frame.wait_lane.length; i++) thin(frame.wait_lane[i], start[i], stop[i]);
  }

  // The tokens of one lane that the window shows, ticks of one shade together.
  row(ctx, t, axis, lane, hovered) {
    const span = this.spans.get(lane);
    if (!span) return;
    const { frame } = t, at = frame[`token_${axis}`], last = frame[`until_${axis}`], stop = span[1];
    const unit = axis === "time" ? 0 : 1, shades = this.shades(lane, t), high = this.high(t), y = this.middle(t, lane);
    const scale = (t.width - t.left - GAP) / (t.to - t.from || 1), left = t.left - t.from * scale;
    let i = this.firstShown(span, at, last || at, t.from - unit), before = -Infinity;
    for (const bucket of this.buckets) bucket.length = 0;
    this.refused.length = 0;
    const isPainted = Boolean(last) && !ctx.isRecording; // by `strips`
    for (; !isPainted && i < stop && at[i] <= t.to; i++) {
      const x = left + at[i] * scale;
      const bucket = frame.token_accepted[i] ? this.buckets[shadeOf(frame.token_logprob[i])] : this.refused;
      if (last) {
        bucket.push(x, Math.max(1, (last[i] + unit - at[i]) * scale));
        continue;
      }
      const slot = this.slot(at, i, span, unit) * scale;
      if (slot > 13 && high >= 14 && this.word(ctx, t, i, x, y, slot, shades, i === hovered)) continue;
      if (x - before < 0.7) continue;
      before = x;
      bucket.push(x, clamp(slot * 0.6, 1.3, 6));
    }
    this.ticks(ctx, t, shades, y, high);
    if (hovered >= span[0] && hovered < stop && last) {
      outlineToken(ctx, this.card.colors, left + at[hovered] * scale, y, Math.max(1, (last[hovered] + unit - at[hovered]) * scale), high);
    }
  }

  // How far a token's text may reach: to the next one, but not far into a wait.
  slot(at, i, [first, stop], unit) {
    const before = i > first ? (at[i] - at[i - 1]) * 3 : unit;
    const after = i + 1 < stop && at[i + 1] > at[i] ? at[i + 1] - at[i] : before / 3;
    return unit || Math.min(after, before || after);
  }

  // The first token of a lane that reaches to `from` or beyond.
  firstShown([first, stop], at, last, from) {
    let low = first, high = stop;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (last[middle] < from) low = middle + 1; else high = middle;
    }
    return at === last && low > first ? low - 1 : low; // the one before may reach into the window
  }

  ticks(ctx, t, shades, y, high) {
    const parts = t.frame.modelled ? MODELLED_PARTS : WHOLE_PART;
    const paint = (color, bucket, [from, share]) => {
      if (!bucket.length) return;
      ctx.fillStyle = this.style(color);
      for (let k = 0; k < bucket.length; k += 2) ctx.fillRect(bucket[k], y + from * high, bucket[k + 1], share * high);
    };
    for (const part of parts) this.buckets.forEach((bucket, s) => paint(shades[s], bucket, part));
    paint(this.card.colors.idle, this.refused, [0, 0.5]);
  }

  text(i) {
    const { frame } = this.card;
    return this.texts[i] ??= readable(DECODER.decode(frame.text.subarray(i ? frame.token_stop[i - 1] : 0, frame.token_stop[i])));
  }

  // A token as text, if it fits; whether it did.
  word(ctx, t, i, x, y, slot, shades, isHovered) {
    const text = this.text(i), wide = ctx.measureText(text).width, high = this.high(t), { frame } = t;
    if (wide + 6 > slot && slot <= 44) return false;
    const refused = !frame.token_accepted[i], width = Math.min(slot - 1, Math.max(wide + 8, 10));
    const color = refused ? this.card.colors.idle : shades[shadeOf(frame.token_logprob[i])];
    ctx.fillStyle = this.style(color);
    ctx.fillRect(x, y - high / 2, width, high);
    ctx.fillStyle = css(textOn(color));
    ctx.fillText(fit(ctx, text, width - 5), x + 3, y + 0.5);
    if (refused) ctx.fillRect(x + 2, y, Math.min(wide + 2, width - 4), 1);
    if (isHovered) outlineToken(ctx, this.card.colors, x, y, width, high);
    t.readable += 1;
    return true;
  }

  // On an axis that is not time each lane has its own moment: what lies beyond it is faint.
  fade(ctx, t) {
    const { frame, card } = t;
    if (card.cursor >= frame.now) return;
    ctx.fillStyle = css(card.colors.paper, 0.72);
    for (const lane of t.visible()) {
      const [low, high] = this.spans.get(lane) || [0, 0];
      const passed = countBelow(frame.token_time.subarray(low, high), card.cursor + 1e-12);
      const place = low + passed < high ? frame.token_place[low + passed] : frame.last_place[t.at(lane)];
      const born = frame.born[t.at(lane)] <= card.cursor + 1e-12;
      const left = Math.max(t.left, t.x(born ? place : frame.born_place[t.at(lane)]));
      if (left < t.width) ctx.fillRect(left, t.y(lane), t.width - left, t.pitch);
    }
  }

  // The token under the pointer, -1 where there is none.
  at(t, axis, spot) {
    const span = this.spans.get(spot.lane);
    if (!span) return -1;
    const { frame } = t, at = frame[`token_${axis}`], own = at.subarray(...span);
    const place = countBelow(own, spot.time + 1e-12) - 1;
    if (place < 0) return -1;
    const i = span[0] + place, last = frame[`until_${axis}`], unit = axis === "time" ? 0 : 1;
    const slack = 12 / (t.width - t.left) * (t.to - t.from);
    const next = place + 1 < own.length ? own[place + 1] : own[place] + unit + slack;
    return spot.time < Math.min(next, (last ? last[i] : at[i]) + Math.max(unit, slack * 4)) ? i : -1;
  }
}
