// States of a page as the fold numbers them, and the room kept beside the cells.

export const FREE = 0;
export const USED = 1;
export const CACHED = 2;

export const GUTTER = 76; // room for owner names, CSS pixels
export const CAPTION = 22; // room for the line above the host pages

// How many pages the grid shows: all of them, or where most were never used, twice those that were,
// rounded up so that the grid seldom changes while a run goes on.
export function pagesShown(frame) {
  const total = frame.state.length;
  let used = total;
  while (used && !frame.act[used - 1] && frame.state[used - 1] === FREE) used -= 1;
  const room = Math.max(64, 2 ** Math.ceil(Math.log2(2 * used + 1)));
  return 2 * room <= total ? room : total;
}
