// What lies over the cells: counts on shared pages, names of rows, what is hovered, and its words.

import { css, mix, textOn } from "../../canvas/colors.js";
import { NOBODY } from "../../canvas/frames.js";
import { grouped, three } from "../../canvas/numbers.js";
import { fit } from "../../canvas/text.js";
import { ownerSwatch } from "../../canvas/swatch.js";
import { CACHED, CAPTION, FREE, GUTTER, USED } from "./states.js";

export function drawOverCells(cells, ctx, width, height) {
  const { layout } = cells, { colors } = cells.card;
  drawCounts(cells, ctx);
  ctx.textAlign = "left";
  ctx.font = `12px ${colors.font}`;
  if (layout.kind === "memory") nameHost(cells, ctx, width); else nameRows(cells, ctx, width);
  drawLit(cells, ctx);
}

// How many share a page, where its cell has room for the number.
function drawCounts(cells, ctx) {
  const frame = cells.card.frame, { layout, ratio } = cells, { colors } = cells.card;
  const wide = (layout.wide - layout.gap) / ratio, tall = (layout.tall - layout.gap) / ratio;
  if (tall < 14 || wide < 14) return;
  ctx.textAlign = "center";
  ctx.font = `600 ${tall >= 24 ? 13 : 12}px ${colors.font}`;
  for (const [page, x, y] of sharedCells(cells, frame)) {
    const text = frame.refs[page] > 99 ? "99+" : String(frame.refs[page]);
    const size = ctx.measureText(text).width + 4;
    if (size > wide) continue;
    const { color } = cells.shade(page, frame.owner[page]);
    const share = cells.byMass && frame.mass ? 0.08 + 0.92 * (frame.mass[page] >> 3) / 31 : 1;
    const plate = mix(colors.paper, color, share); // hides the texture behind the number
    ctx.fillStyle = css(plate);
    ctx.fillRect(x - size / 2, y - 5, size, 10);
    ctx.fillStyle = css(textOn(plate));
    ctx.fillText(text, x, y + 0.5);
  }
}

function* sharedCells(cells, frame) {
  const { layout } = cells;
  if (layout.kind === "memory") {
    for (let page = 0; page < frame.state.length; page++) {
      if (frame.refs[page] > 1) yield [page, ...cells.places(page)[0]];
    }
    return;
  }
  for (const [line, row] of layout.visible.entries()) {
    const start = frame.row_offset[row];
    const count = Math.min(layout.columns, frame.row_offset[row + 1] - start);
    for (let i = 0; i < count; i++) {
      const page = frame.row_page[start + i];
      if (page >= 0 && frame.refs[page] > 1) yield [page, ...cells.centre(i, line)];
    }
  }
}

function nameHost(cells, ctx, width) {
  const frame = cells.card.frame, { layout, ratio } = cells;
  captionStates(cells, ctx, width);
  if (!frame.host_owner.length) return;
  const held = frame.host_owner.reduce((n, owner) => n + (owner !== NOBODY), 0);
  ctx.fillStyle = css(cells.card.colors.faint);
  const text = `Host memory: ${grouped(held)} of ${grouped(frame.host_owner.length)} pages hold what was swapped out`;
  ctx.fillText(fit(ctx, text, width), 0, layout.hostTop / ratio - CAPTION / 2 + 1);
}

function captionStates(cells, ctx, width) {
  const frame = cells.card.frame, { layout, ratio } = cells, total = frame.states.length;
  if (!total) return;
  const count = (which) => grouped(frame.states.reduce((n, state) => n + (state === which), 0));
  ctx.fillStyle = css(cells.card.colors.faint);
  const text = `Recurrent states: ${count(USED)} of ${grouped(total)} pages held, ${count(CACHED)} kept for prefixes`;
  ctx.fillText(fit(ctx, text, width), 0, layout.stateTop / ratio - CAPTION / 2 + 1);
}

// What a page of recurrent states is, as lines for the tip.
export function stateWords(frame, page) {
  const owner = frame.states_owner[page], name = owner === NOBODY ? "nobody shown" : frame.owners[owner];
  if (frame.states[page] === FREE) return [`State page ${page}: free`];
  if (frame.states[page] === CACHED) return [`State page ${page}: kept for a prefix`, `last held by ${name}`];
  const refs = frame.states_refs[page];
  return [`State page ${page}: the recurrent state of ${refs > 1 ? `${refs} requests, until one goes on` : name}`];
}

function nameRows(cells, ctx, width) {
  const frame = cells.card.frame, { layout, ratio } = cells, { colors, chosen } = cells.card;
  layout.visible.forEach((row, line) => {
    const y = (line + 0.5) * layout.pitch / ratio;
    const name = frame.owners[frame.row_owner[row]];
    const color = colors.hues[frame.owner_hue[frame.row_owner[row]]];
    ownerSwatch(ctx, color, frame.owner_texture[frame.row_owner[row]], colors.paper, 0, y);
    ctx.fillStyle = css(colors.ink);
    ctx.font = `${name === chosen ? 600 : 400} 12px ${colors.font}`;
    ctx.fillText(fit(ctx, name, GUTTER - 22), 16, y + 0.5);
    const left = frame.row_offset[row + 1] - frame.row_offset[row] - layout.columns;
    if (left > 0) {
      ctx.fillStyle = css(colors.faint);
      ctx.fillText(`+${grouped(left)}`, layout.gutter / ratio + layout.columns * layout.wide / ratio + 4, y);
    }
  });
}

// Outline the hovered page wherever it stands, joined by a line; outline pages lit from elsewhere.
function drawLit(cells, ctx) {
  const { layout, ratio, hovered, lit } = cells, { colors } = cells.card;
  const half = (layout.wide - layout.gap) / ratio / 2 + 1.5;
  const high = (layout.tall - layout.gap) / ratio / 2 + 1.5;
  const outline = (x, y) => {
    ctx.strokeStyle = css(colors.paper);
    ctx.lineWidth = 4;
    ctx.strokeRect(x - half, y - high, 2 * half, 2 * high);
    ctx.strokeStyle = css(colors.ink);
    ctx.lineWidth = 2;
    ctx.strokeRect(x - half, y - high, 2 * half, 2 * high);
  };
  for (const page of new Set([...lit, ...cells.pages])) if (page !== hovered) cells.places(page).forEach(([x, y]) => outline(x, y));
  if (hovered === undefined || hovered === null) return;
  const spots = cells.places(hovered);
  if (spots.length > 1) {
    ctx.strokeStyle = css(colors.ink);
    ctx.lineWidth = 2;
    ctx.beginPath();
    for (const [x, y] of spots) ctx.lineTo(x + half, y);
    ctx.stroke();
  }
  spots.forEach(([x, y]) => outline(x, y));
}

// Everything there is to say about a page, as lines for the tip.
export function pageWords(frame, page, byMass) {
  const held = [];
  for (let row = 0; row < frame.row_owner.length; row++) {
    const start = frame.row_offset[row], stop = frame.row_offset[row + 1];
    const place = frame.row_page.subarray(start, stop).indexOf(page);
    if (place >= 0) held.push([frame.owners[frame.row_owner[row]], frame.row_start[start + place]]);
  }
  const kept = frame.owner[page] === NOBODY ? "" : frame.owners[frame.owner[page]];
  const lines = [];
  if (held.length) {
    const names = held.slice(0, 6).map(([name]) => name).join(", ");
    const more = held.length > 6 ? ` and ${held.length - 6} more` : "";
    lines.push(`Page ${page}: ${held.length > 1 ? `shared by ${held.length}` : `held by ${names}`}`);
    if (held.length > 1) lines.push(names + more);
    const [name, start] = held[0], filled = frame.fill[page];
    lines.push(filled ? `positions ${grouped(start)}–${grouped(start + filled - 1)} of ${name}`
      : `reserved from position ${grouped(start)} of ${name}`);
    lines.push(`${filled} of ${frame.page_size} positions filled`);
  } else if (frame.state[page] === CACHED) {
    lines.push(`Page ${page}: cached, nobody holds it`, `last held by ${kept}`);
    lines.push(`${grouped(frame.age[page])} steps idle`);
  } else {
    lines.push(`Page ${page}: free`);
  }
  if (frame.act[page]) {
    const why = frame.whys[frame.why[page]];
    lines.push(`${frame.acts[frame.act[page]]} in step ${grouped(frame.acted[page])}${why ? `: ${why}` : ""}`);
  }
  if (byMass && frame.mass) lines.push(`attention: ${three((frame.mass[page] / 255) ** 2)} of the most`);
  return lines;
}

export function rowWords(frame, row) {
  const pages = frame.row_page.subarray(frame.row_offset[row], frame.row_offset[row + 1]);
  let shared = 0, host = 0;
  for (const page of pages) {
    if (page < 0) host += 1; else if (frame.refs[page] > 1) shared += 1;
  }
  const lines = [frame.owners[frame.row_owner[row]], `${grouped(pages.length)} pages, ${grouped(shared)} shared`];
  if (host) lines.push(`${grouped(host)} swapped out to the host`);
  return lines;
}
