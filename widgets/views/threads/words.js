// What the thread view says under the pointer, and what its marks mean.

import { css, mix } from "../../canvas/colors.js";
import { drawnLegend } from "../../canvas/drawn_legend.js";
import { clockTime, grouped, three } from "../../canvas/numbers.js";
import { FORK, marksNear } from "./edges.js";

export function threadWords(t, lanes, state, spot) {
  if (!spot || (spot.lane < 0 && state.edge < 0)) return null;
  const { frame } = t, lines = [];
  if (spot.lane >= 0 && t.known(spot.lane)) {
    const place = t.at(spot.lane), parent = frame.above[place];
    lines.push(frame.names[place]);
    if (state.token >= 0) lines.push(...tokenLines(t, lanes, state));
    if (parent >= 0 && t.known(parent)) lines.push(`child of ${frame.names[t.at(parent)]}`);
    if (frame.ended[place] <= t.card.cursor + 1e-12) {
      const how = frame.outcomes[frame.outcome[place]], why = frame.whys[place];
      lines.push(`${how} at ${clockTime(frame.ended[place], frame.now)}${why ? `: ${why}` : ""}`);
    }
    lines.push(...marksNear(t, state.axis, spot));
  }
  if (state.edge >= 0) lines.push(edgeLine(t, state.edge));
  return lines;
}

function tokenLines(t, lanes, { token, axis }) {
  const { frame } = t, likely = frame.token_logprob[token];
  const share = `probability ${three(Math.exp(likely) * 100)} % (log ${three(likely).replace("-", "−")})`;
  const when = `${axis === "place" ? `token ${grouped(frame.token_place[token] + 1)} of its path, ` : ""}`
    + clockTime(frame.token_time[token], frame.now);
  if (lanes.isBinned) return [`${grouped(frame.token_count[token])} tokens from ${when} on`, `mean ${share}`];
  return [`“${lanes.text(token)}” at ${when}`, share,
    ...(frame.token_accepted[token] ? [] : ["a draft that verification refused"])];
}

function edgeLine(t, i) {
  const { frame } = t, [to, source] = [frame.edge_to[i], frame.edge_source[i]].map((lane) => frame.names[t.at(lane)]);
  const when = clockTime(frame.edge_time[i], frame.now);
  return frame.edge_kind[i] === FORK ? `${to} forked from ${source} at ${when}` : `${to} read ${source} at ${when}`;
}

export function threadsLegend(card, legend) {
  drawnLegend(card, legend, (item, colors, hue) => {
    const ticks = (shares) => (ctx) => shares.forEach((share, i) => {
      ctx.fillStyle = css(mix(colors.paper, hue, share));
      ctx.fillRect(i * 5, 1, 4, 12);
    });
    item("token, sure to unlikely", ticks([1, 0.6, 0.25]));
    item("waits", (ctx) => ctx.fillRect(0, 6, 14, 2));
    item("fork", (ctx) => {
      ctx.fillRect(6.2, 3, 1.6, 11);
      ctx.beginPath();
      ctx.arc(7, 3.5, 3, 0, 7);
      ctx.fill();
    });
    item("read", (ctx) => {
      ctx.fillRect(6.2, 0, 1.6, 8);
      ctx.beginPath();
      ctx.moveTo(7, 14);
      ctx.lineTo(2.5, 7);
      ctx.lineTo(11.5, 7);
      ctx.fill();
    });
    item("pruned", (ctx) => {
      ctx.fillStyle = css(mix(colors.idle, colors.faint, 0.3));
      ctx.fillRect(0, 2, 12, 10);
      ctx.fillStyle = css(colors.faint);
      ctx.fillRect(10, 1, 3, 12);
    });
    item("critical path", (ctx) => {
      ctx.fillStyle = css(colors.ink);
      ctx.fillRect(0, 6, 14, 3);
    });
  });
}
