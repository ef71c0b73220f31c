// States of a page as the fold numbers them, and the room kept beside the cells.

export const FREE = 0;
export const USED = 1;
export const CACHED = 2;

export const GUTTER = 76; // room for owner names, CSS pixels
export const CAPTION = 22; // room for the line above the host pages
