// The plan that a schedule follows: a button that copies it as text, and what was found of it.

import { make } from "../../page/nodes.js";
import { copied } from "../../page/clipboard.js";

const COPIED = 1500; // milliseconds that a button says so

export function schedulePlan(card) {
  const row = make("div", "pw-switch", card.tools), button = make("button", "", row, "Copy plan");
  const words = make("div", "", card.tools);
  button.type = "button";
  button.title = "The plan as text; choose the schedule as_written to paste it, edited, back";
  words.style.cssText = "flex-basis:100%;order:1;font-size:12px;color:var(--faint)";
  button.onclick = async () => {
    const said = await copied(card.frame.plan);
    button.textContent = said ? "Copied" : "Copying is not allowed here";
    setTimeout(() => { button.textContent = "Copy plan"; }, COPIED);
  };
  return {
    words, // as high as they are wrapped
    show() {
      row.style.display = card.frame.plan ? "" : "none";
      const about = new Map(); // what about: its sentences
      for (const [name, text] of card.frame.said) about.set(name, [...(about.get(name) || []), text]);
      words.style.display = about.size ? "" : "none";
      words.textContent = [...about.values()]
        .map((each) => each[0] + (each.length > 1 ? ` (and ${each.length - 1} more)` : "")).join(" · ");
    },
  };
}
