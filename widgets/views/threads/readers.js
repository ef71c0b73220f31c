// Who reads whom at the cursor: an arc from each thread to those that see what it wrote, as wide
// as the attention that their last sampled token gave to it.

import { css } from "../../canvas/colors.js";
import { clamp, worded } from "../../canvas/numbers.js";
import { GAP } from "../../canvas/timeline.js";
import { sharesAt } from "./look.js";

const MOST = 24; // arcs drawn at once; of more, those of the lane under the pointer
const BULGE = [16, 12, 84]; // pixels an arc stands out: at least, more with each lane, at most
const WIDE = [1.2, 5]; // pixels of a line without attention, and with all of it
const HEAD = 6;
const APART = 10; // pixels between the arcs there and back

// [{writer, reader, share}] at the cursor; `share` is NaN where no attention is sampled.
function readersAt(t, lanes, matrix) {
  const { frame } = t, found = new Map(), count = frame.blocks?.length || 0;
  const here = [...t.visible()], areOver = here.every((lane) => matrix.isOver(lane)); // then: as they ended
  for (const reader of here) {
    if (matrix.isOver(reader) && !areOver) continue;
    const by = matrix.until(reader), shares = sharesAt(t, reader, t.card.cursor);
    for (let block = 0; block < count; block++) {
      const writer = frame.block_row[block];
      if (writer < 0 || writer === reader || !t.known(writer) || matrix.value(reader, block, by) < 0) continue;
      const key = writer * frame.lanes + reader, pair = found.get(key) || { writer, reader, share: shares ? 0 : NaN };
      pair.share += shares?.get(block) || 0;
      found.set(key, pair);
    }
  }
  return [...found.values()];
}

// Those that are drawn: all of a few, else what the lane under the pointer writes and reads.
function arcsShown(pairs, lane) {
  const own = pairs.filter(({ writer, reader }) => writer === lane || reader === lane);
  return own.length || pairs.length > MOST ? own : pairs;
}

export function drawReaders(ctx, t, lanes, matrix, lane) {
  const { card } = t, at = t.x(t.scale.at(card.cursor));
  if (!(at >= t.left - 1 && at <= t.width)) return;
  const isRight = t.width - GAP - at > BULGE[2] + HEAD, side = isRight ? 1 : -1, half = lanes.high(t) / 2;
  for (const { writer, reader, share } of arcsShown(readersAt(t, lanes, matrix), lane)) {
    const apart = Math.abs(writer - reader), down = reader > writer ? 1 : -1;
    const out = (Math.min(BULGE[2], BULGE[0] + BULGE[1] * apart) + (down < 0 ? APART : 0)) * side;
    const nudge = clamp(half * 0.45, 1.5, 6) * down; // there and back lie beside one another
    const from = lanes.middle(t, writer) + nudge, to = lanes.middle(t, reader) - nudge;
    ctx.strokeStyle = ctx.fillStyle = css(card.colors.hues[t.frame.hue[t.at(writer)]], 0.9);
    ctx.lineWidth = WIDE[0] + (WIDE[1] - WIDE[0]) * clamp(share || 0, 0, 1);
    ctx.beginPath();
    ctx.moveTo(at + 2 * side, from);
    ctx.bezierCurveTo(at + out * 1.33, from, at + out * 1.33, to, at + (2 + HEAD) * side, to);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(at + 2 * side, to);
    ctx.lineTo(at + (2 + HEAD) * side, to - HEAD / 2 - ctx.lineWidth / 2);
    ctx.lineTo(at + (2 + HEAD) * side, to + HEAD / 2 + ctx.lineWidth / 2);
    ctx.fill();
  }
}

// Whom a lane reads at the cursor, in words.
export function readerWords(t, lanes, matrix, lane) {
  const name = (of) => t.frame.names[t.at(of)];
  const own = readersAt(t, lanes, matrix).filter(({ reader }) => reader === lane);
  own.sort((a, b) => (b.share || 0) - (a.share || 0));
  const said = own.slice(0, 4).map(({ writer, share }) =>
    (Number.isFinite(share) ? `${name(writer)} (${worded(share, "%")})` : name(writer)));
  return said.length ? [`reads now: ${said.join(", ")}${own.length > 4 ? ` and ${own.length - 4} more` : ""}`] : [];
}
