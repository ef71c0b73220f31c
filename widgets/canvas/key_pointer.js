// A picture's pointer moved by keys, for whoever has none: arrows move it (Shift: farther), Enter
// presses where it is, Escape takes it away. The picture hears what it hears of a mouse.

import { clamp } from "./numbers.js";

const POINTER_STEP = 12; // pixels a key moves the pointer
const POINTER_FAR = 5; // times as far with Shift
const POINTER_WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function pointByKeys(canvas, title) {
  let at = null; // where it is, in pixels of the canvas
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title} Arrow keys move a pointer over the picture, Enter picks, Escape leaves`);
  const tell = (kind) => {
    const box = canvas.getBoundingClientRect();
    const point = { clientX: box.left + at.x, clientY: box.top + at.y, pointerId: 1, bubbles: false };
    canvas.setPointerCapture = () => {}; // there is no such pointer to be captured
    canvas.dispatchEvent(new PointerEvent(kind, point));
    delete canvas.setPointerCapture;
  };
  const leave = () => {
    if (!at) return;
    tell("pointerleave");
    at = null;
  };
  const move = ([x, y], far) => {
    const { clientWidth: width, clientHeight: height } = canvas, step = POINTER_STEP * far;
    const from = at || { x: POINTER_STEP / 2 - Math.max(0, x) * step, y: POINTER_STEP / 2 - Math.max(0, y) * step };
    at = { x: clamp(from.x + x * step, 1, width - 2), y: clamp(from.y + y * step, 1, height - 2) };
    tell("pointermove");
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (POINTER_WAYS[event.key]) move(POINTER_WAYS[event.key], event.shiftKey ? POINTER_FAR : 1);
    else if (event.key === "Enter" && at) for (const kind of ["pointerdown", "pointerup", "click"]) tell(kind);
    else if (event.key === "Escape" && at) leave();
    else return;
    event.preventDefault();
    event.stopPropagation(); // the time bar steps by arrows
  });
  canvas.addEventListener("blur", leave);
}
