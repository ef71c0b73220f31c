// Places of tiles: pools under one another, each wrapped to the width.

const GAP = 10;
const TITLE = 20;
const NOTE = 20; // what the marks mean stands over the foot
const NAMED = { prefill: "prefill", decode: "decode", mixed: "prefill and decode" };

// { tiles, pools: [{ title, x, y }], cells: [{ x, y, w, h }] by replica }.
export function layout(frame, width, height) {
  const roles = ["prefill", "mixed", "decode"].filter((role) => frame.roles.includes(role));
  const groups = roles.map((role) => frame.roles.flatMap((r, i) => r === role ? [i] : []));
  const room = height - roles.length * TITLE - NOTE;
  const tiles = frame.names.length <= 160;
  let best = null;
  for (let columns = 1; columns <= (tiles ? 16 : 400); columns++) {
    const rows = groups.reduce((sum, group) => sum + Math.ceil(group.length / columns), 0);
    const gap = tiles ? GAP : 2;
    const w = (width - 16 - gap * (columns - 1)) / columns, h = room / rows - gap;
    const size = tiles ? Math.min(w, 2.2 * h, 300) : Math.min(w, h);
    if (size > (best ? best.size : 0)) best = { columns, size, gap, w, h };
  }
  if (!best) return { tiles, pools: [], cells: [] };
  const w = tiles ? Math.min(best.w, 340) : best.size, h = tiles ? Math.min(best.h, 116) : best.size;
  const cells = [], pools = [];
  let y = 4;
  groups.forEach((group, g) => {
    const many = group.length;
    pools.push({ title: `${NAMED[roles[g]]} · ${many} ${many === 1 ? "replica" : "replicas"}`, x: 8, y: y + 12 });
    y += TITLE;
    group.forEach((replica, place) => {
      const column = place % best.columns, row = Math.floor(place / best.columns);
      cells[replica] = { x: 8 + column * (w + best.gap), y: y + row * (h + best.gap), w, h };
    });
    y += Math.ceil(many / best.columns) * (h + best.gap);
  });
  return { tiles, pools, cells };
}
