// The lane that is read: its text up to a moment, wrapped, at the foot of a view.

import { css, mix } from "./colors.js";
import { clockTime, grouped } from "./numbers.js";
import { ownerSwatch } from "./swatch.js";
import { fit } from "./text.js";
import { GAP } from "./timeline.js";
import { beginsBranch, surety } from "./token_text.js";

export const LINE = 22;
export const LINES = 3;
export const READ_HEAD = 26;
const RECENT = 500;

// Lines of [token, x, width] pieces, each at most `room` wide.
function wrap(ctx, tokens, list, room) {
  const lines = [[]];
  let x = 0;
  for (const i of list) {
    const text = tokens.text(i), shown = tokens.sign(i);
    const width = Math.min(room, Math.max(3, ctx.measureText(shown).width));
    if (x + width > room && x > 0) {
      lines.push([]);
      x = 0;
    }
    lines[lines.length - 1].push([i, x, width]);
    x += width;
    if (text.includes("\n") && tokens.frame.token_accepted[i]) {
      lines.push([]);
      x = 0;
    }
  }
  return lines;
}

// `tokens` may be others than the frame's; `at`: {lane, hovered (a token or -1), until (seconds)}.
export function drawReading(ctx, timeline, tokens, at, top) {
  const { card } = timeline, { colors } = card, { lane, hovered, until } = at;
  ctx.fillStyle = css(colors.line);
  ctx.fillRect(0, top, timeline.width - GAP, 1);
  if (lane < 0 || !timeline.known(lane)) return;
  const all = tokens.byLane.get(lane) || [];
  const list = all.filter((i) => tokens.frame.token_time[i] <= until).slice(-RECENT);
  readingHead(ctx, timeline, tokens, list, at, all.length > RECENT, top + READ_HEAD / 2 + 2);
  ctx.font = `14px ${colors.font}`;
  const lines = wrap(ctx, tokens, list, timeline.width - GAP);
  lines.slice(-LINES).forEach((line, n) => {
    const y = top + READ_HEAD + LINE * (n + 0.5);
    for (const [i, x, width] of line) drawPiece(ctx, timeline, tokens, i, x, y, width, i === hovered);
  });
  ctx.font = `12px ${colors.font}`;
}

// Whose text it is, and how much of it there is by then.
function readingHead(ctx, timeline, tokens, list, at, isLatest, y) {
  const { frame, card } = timeline, { colors } = card, place = timeline.at(at.lane);
  ownerSwatch(ctx, colors.hues[frame.hue[place]], frame.texture[place], colors.paper, 0, y);
  ctx.font = `600 12px ${colors.font}`;
  ctx.fillStyle = css(colors.ink);
  const name = fit(ctx, frame.names[place], 200);
  ctx.fillText(name, 16, y);
  const after = 16 + ctx.measureText(name).width + 10;
  ctx.font = `12px ${colors.font}`;
  ctx.fillStyle = css(colors.faint);
  const said = list.reduce((n, i) => n + tokens.frame.token_accepted[i], 0);
  ctx.fillText(`${grouped(said)}${isLatest ? " latest" : ""} tokens by ${clockTime(at.until, frame.now)}`, after, y);
}

function drawPiece(ctx, timeline, tokens, i, x, y, width, lit) {
  const { colors } = timeline.card, said = tokens.frame, refused = !said.token_accepted[i];
  const hue = colors.hues[timeline.frame.hue[timeline.at(said.token_lane[i])]];
  if (!refused) { // the lane's shades, but pale enough to read ink on
    ctx.fillStyle = css(mix(colors.paper, hue, 0.42 * surety(said.token_logprob[i])));
    ctx.fillRect(x, y - 9, Math.max(1, width - 1), 18);
  }
  ctx.fillStyle = css(refused ? colors.faint : colors.ink);
  ctx.fillText(fit(ctx, tokens.sign(i), width + 1), x, y + 0.5);
  const gap = beginsBranch(said, i) ? 3 : 0;
  if (refused) ctx.fillRect(x + gap, y, width - gap, 1);
  if (gap) ctx.fillRect(x - 0.5, y - 8, 1, 16);
  if (!lit) return;
  ctx.strokeStyle = css(colors.ink);
  ctx.lineWidth = 2;
  ctx.strokeRect(x - 1, y - 10, width + 1, 20);
}
