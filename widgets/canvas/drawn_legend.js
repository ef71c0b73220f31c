// Legends drawn as their views draw.

import { css } from "./colors.js";
import { make } from "../page/nodes.js";

// A legend whose marks are drawn as the view draws them, made anew when the colours change:
// `tell(item, colors, hue)` calls `item(text, paint)` for each mark; `paint` draws in 14 by 14.
export function drawnLegend(card, legend, tell) {
  const key = JSON.stringify(card.colors);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren();
  const { colors } = card, hue = colors.hues[0];
  const item = (text, paint) => {
    const span = make("span", "", legend), canvas = make("canvas", "", span);
    canvas.setAttribute("aria-hidden", "true"); // the word beside it says it
    span.append(text);
    canvas.width = canvas.height = 28;
    const ctx = canvas.getContext("2d");
    ctx.scale(2, 2);
    ctx.fillStyle = ctx.strokeStyle = css(hue);
    ctx.lineWidth = 1.5;
    paint(ctx);
  };
  tell(item, colors, hue);
}
