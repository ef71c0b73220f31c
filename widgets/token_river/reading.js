// The request that is read: its text up to a moment, wrapped, at the foot of the river.

const LINE = 22, LINES = 3, READ_HEAD = 26, RECENT = 500;

// Which lane is read: hovered, else chosen, else the one that spoke last before the cursor.
function laneRead(timeline, tokens, hovered) {
  const { frame, stage } = timeline;
  if (hovered >= 0) return frame.token_lane[hovered];
  const chosen = frame.names.indexOf(stage.chosen);
  if (chosen >= 0) return chosen + frame.lane0;
  const last = countBelow(frame.token_time, stage.cursor + 1e-12) - 1;
  return last >= 0 ? frame.token_lane[last] : -1;
}

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

function drawReading(ctx, timeline, tokens, hovered, top) {
  const { frame, stage } = timeline, { colors } = stage;
  const lane = laneRead(timeline, tokens, hovered);
  ctx.fillStyle = css(colors.line);
  ctx.fillRect(0, top, timeline.width - GAP, 1);
  if (lane < 0 || !timeline.known(lane)) return lane;
  const until = hovered >= 0 ? frame.token_time[hovered] : stage.cursor;
  const all = tokens.byLane.get(lane) || [];
  const list = all.filter((i) => frame.token_time[i] <= until).slice(-RECENT);
  const place = timeline.at(lane), y0 = top + READ_HEAD / 2 + 2;
  ctx.fillStyle = textured(ctx, colors.hues[frame.hue[place]], frame.texture[place], colors.paper);
  ctx.fillRect(0, y0 - 5, 10, 10);
  ctx.font = `600 12px ${colors.font}`;
  ctx.fillStyle = css(colors.ink);
  const name = fit(ctx, frame.names[place], 200);
  ctx.fillText(name, 16, y0);
  const after = 16 + ctx.measureText(name).width + 10;
  ctx.font = `12px ${colors.font}`;
  ctx.fillStyle = css(colors.faint);
  const said = list.reduce((n, i) => n + frame.token_accepted[i], 0);
  ctx.fillText(`${grouped(said)}${all.length > RECENT ? " latest" : ""} tokens by ${seconds(until, timeline.to)}`,
    after, y0);
  ctx.font = `14px ${colors.font}`;
  const lines = wrap(ctx, tokens, list, timeline.width - GAP);
  lines.slice(-LINES).forEach((line, n) => {
    const y = top + READ_HEAD + LINE * (n + 0.5);
    for (const [i, x, width] of line) drawPiece(ctx, timeline, tokens, i, x, y, width, i === hovered);
  });
  ctx.font = `12px ${colors.font}`;
  return lane;
}

function drawPiece(ctx, timeline, tokens, i, x, y, width, lit) {
  const { frame, stage } = timeline, { colors } = stage, refused = !frame.token_accepted[i];
  const hue = colors.hues[frame.hue[timeline.at(frame.token_lane[i])]];
  if (!refused) { // the lane's shades, but pale enough to read ink on
    ctx.fillStyle = css(mix(colors.paper, hue, 0.42 * surety(frame.token_logprob[i])));
    ctx.fillRect(x, y - 9, Math.max(1, width - 1), 18);
  }
  ctx.fillStyle = css(refused ? colors.faint : colors.ink);
  ctx.fillText(fit(ctx, tokens.sign(i), width + 1), x, y + 0.5);
  if (refused) ctx.fillRect(x, y, width, 1);
  if (!lit) return;
  ctx.strokeStyle = css(colors.ink);
  ctx.lineWidth = 2;
  ctx.strokeRect(x - 1, y - 10, width + 1, 20);
}
