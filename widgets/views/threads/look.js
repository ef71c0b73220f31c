// Whom a token attended to: the sample of its step, or of the last sampled one before it.

import { clockTime, countBelow } from "../../canvas/numbers.js";
import { readable } from "../../canvas/token_text.js";

// The last sample of a lane's attention up to a moment: {time, shares: block -> share}; or null.
function sampleOf(frame, lane, by) {
  if (!frame.look_row?.length) return null;
  let at = countBelow(frame.look_time, by) - 1;
  while (at >= 0 && frame.look_row[at] !== lane) at -= 1;
  if (at < 0) return null;
  const shares = new Map();
  for (let i = at ? frame.look_stop[at - 1] : 0; i < frame.look_stop[at]; i++) {
    if (frame.share_block[i] >= 0) shares.set(frame.share_block[i], frame.share_value[i]);
  }
  return { time: frame.look_time[at], shares };
}

// Block -> share of the lane's last sampled attention by `time`; null where none is.
export const sharesAt = (t, lane, time) => sampleOf(t.frame, lane, time + 1e-12)?.shares || null;

export function lookOf(t, lanes, { token }) {
  const { frame } = t;
  if (token < 0 || lanes.isBinned) return null;
  const lane = frame.token_lane[token], sample = sampleOf(frame, lane, frame.token_time[token] + 1e-12);
  if (!sample) return null;
  const { shares, time } = sample, isOwn = time >= frame.token_time[token] - 1e-12;
  const name = frame.names[t.at(lane)];
  const text = isOwn ? `attention of “${lanes.text(token)}” by block` : `attention of ${name} at ${clockTime(time, frame.now)}`;
  return { lane, shares, most: Math.max(1e-9, ...shares.values()), text };
}

// The blocks that got most, in words.
export function lookWords(frame, look) {
  if (!look) return [];
  const most = [...look.shares].sort((a, b) => b[1] - a[1]).slice(0, 3);
  return [`attends to ${most.map(([block, share]) => `${readable(frame.blocks[block])} ${Math.round(share * 100)} %`).join(", ")}`];
}
