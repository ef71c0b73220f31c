// The lanes of the token river: ticks where tokens are close, their text where there is room.

import { css, mix, textOn } from "../../canvas/colors.js";
import { clamp, clockTime, three } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { beginsBranch, outlineToken, surety } from "../../canvas/token_text.js";

function tokenColor(timeline, i) {
  const { frame, card } = timeline, { colors } = card;
  if (!frame.token_accepted[i]) return colors.idle;
  return mix(colors.paper, timeline.color(frame.token_lane[i]), surety(frame.token_logprob[i]));
}

export function drawRiver(ctx, timeline, tokens, hovered) {
  const { frame } = timeline;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, timeline.top, timeline.width, timeline.bottom - timeline.top);
  ctx.clip();
  timeline.readable = 0;
  for (const lane of timeline.visible()) {
    const list = tokens.byLane.get(lane) || [];
    let place = 0, high = list.length;
    while (place < high) { // the first token that may still reach into the window
      const middle = (place + high) >> 1;
      if (tokens.next[list[middle]] < timeline.from) place = middle + 1; else high = middle;
    }
    let last = -Infinity;
    for (; place < list.length && tokens.at[list[place]] <= timeline.to; place++) {
      last = drawToken(ctx, timeline, tokens, list[place], last, hovered);
    }
  }
  ctx.restore();
}

// What a draft is told by besides its shade: held, a bar under it; rolled back with a refused one,
// an outline and no ground.
const HELD = 1;
const ROLLED_BACK = 3;

function draftMark(ctx, timeline, i, [x, top, width, high]) {
  const { colors } = timeline.card, part = timeline.frame.token_part[i];
  if (part === HELD) {
    ctx.fillStyle = css(colors.ink, 0.7);
    ctx.fillRect(x, top + high - 2, width, 2);
  } else if (part === ROLLED_BACK && width > 3) {
    ctx.fillStyle = css(colors.paper);
    ctx.fillRect(x + 1, top + 1, width - 2, high - 2);
  }
}

// A branch leaves the tree: a hook above its first word.
function branchMark(ctx, colors, x, y, high) {
  ctx.fillStyle = css(colors.ink);
  ctx.fillRect(x, y - high / 2, 1, high);
  ctx.fillRect(x, y - high / 2, 6, 1.5);
}

// One token as text or tick; returns the pixel its tick took, so that the next can skip it.
function drawToken(ctx, timeline, tokens, i, last, hovered) {
  const { frame, card } = timeline, { colors } = card;
  const x = timeline.x(tokens.at[i]), slot = timeline.x(tokens.next[i]) - x;
  const y = timeline.y(frame.token_lane[i]) + timeline.pitch / 2;
  const high = Math.min(20, timeline.pitch - 4), refused = !frame.token_accepted[i];
  const color = tokenColor(timeline, i);
  ctx.fillStyle = css(color);
  if (slot > 13 && high >= 14) {
    const text = tokens.sign(i), wide = ctx.measureText(text).width;
    if (wide + 6 <= slot || slot > 44) {
      const width = Math.min(slot - 1, Math.max(wide + 8, 10));
      ctx.fillRect(x, y - high / 2, width, high);
      draftMark(ctx, timeline, i, [x, y - high / 2, width, high]);
      ctx.fillStyle = css(frame.token_part[i] === ROLLED_BACK ? colors.faint : textOn(color));
      const shown = fit(ctx, text, width - 5);
      ctx.fillText(shown, x + 3, y + 0.5);
      if (refused) ctx.fillRect(x + 2, y, Math.min(wide + 2, width - 4), 1);
      if (beginsBranch(frame, i)) branchMark(ctx, colors, x, y, high);
      if (i === hovered) outlineToken(ctx, colors, x, y, width, high);
      timeline.readable += 1;
      return x;
    }
  }
  const width = clamp(slot * 0.4, 1.4, 5);
  if (x - last < 0.7) return last;
  if (refused) ctx.fillRect(x, y, frame.token_part[i] === ROLLED_BACK ? Math.min(width, 1.2) : width, high / 2);
  else if (frame.modelled) { // modelled ticks are dashed
    ctx.fillRect(x, y - high / 2, width, high * 0.4);
    ctx.fillRect(x, y + high * 0.1, width, high * 0.4);
  } else ctx.fillRect(x, y - high / 2, width, high);
  if (!refused) draftMark(ctx, timeline, i, [x, y - high / 2, width, high]);
  if (i === hovered) outlineToken(ctx, colors, x, y, width, high);
  return x;
}

// The token whose slot the pointer is in, -1 where there is none.
export function tokenAt(timeline, tokens, spot) {
  const list = tokens.byLane.get(spot.lane) || [];
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tokens.at[list[middle]] <= spot.time) low = middle + 1; else high = middle;
  }
  const i = list[low - 1];
  if (i === undefined) return -1;
  const next = Math.min(tokens.next[i], tokens.at[i] + 30 / timeline.width * timeline.to);
  return spot.time < next ? i : -1;
}

export function tokenWords(timeline, i) {
  const { frame } = timeline, likely = frame.token_logprob[i];
  const name = frame.names[timeline.at(frame.token_lane[i])];
  const share = Math.exp(likely) * 100;
  return [`${name} at ${clockTime(frame.token_time[i], timeline.to)}`,
    `probability ${three(share)} % (log ${three(likely).replace("-", "−")})`,
    ...became(frame.token_part[i], frame.token_branch[i])];
}

function became(part, branch) {
  const said = ["", "a draft that held", "a draft that verification refused",
    "a draft rolled back, unjudged: the one before it was refused"][part];
  return said ? [`${said}${branch ? `, on branch ${branch} of its tree` : ""}`] : [];
}
