// What the marks of the request lanes mean, drawn as the lanes draw them.

import { css, mix } from "../../canvas/colors.js";
import { drawnLegend } from "../../canvas/drawn_legend.js";

export function lanesLegend(card, legend) {
  drawnLegend(card, legend, (item, colors, hue) => {
    item("queued", (ctx) => ctx.fillRect(0, 6, 14, 2));
    item("prefill", (ctx) => ctx.fillRect(0, 2, 14, 10));
    item("token", (ctx) => {
      ctx.fillStyle = css(mix(hue, colors.paper, 0.76));
      ctx.fillRect(0, 3, 14, 8);
      ctx.fillStyle = css(hue);
      for (const x of [1, 5, 9, 12]) ctx.fillRect(x, 3, 1.3, 8);
    });
    item("preempted", (ctx) => ctx.strokeRect(1, 3.5, 12, 7));
    item("swapped out", (ctx) => {
      ctx.setLineDash([3, 2]);
      ctx.strokeRect(1, 3.5, 12, 7);
    });
    if (card.frame?.places?.length) {
      item("sent on", (ctx) => {
        ctx.fillStyle = css(colors.ink);
        ctx.fillRect(0, 9, 10, 2);
        ctx.moveTo(14, 10);
        ctx.lineTo(9, 6);
        ctx.lineTo(9, 14);
        ctx.fill();
      });
    }
    item("finished", (ctx) => {
      ctx.arc(7, 7, 4, 0, 7);
      ctx.fill();
    });
    item("aborted", (ctx) => {
      ctx.strokeStyle = css(colors.faint);
      ctx.arc(7, 7, 4, 0, 7);
      ctx.stroke();
    });
    item("rejected", (ctx) => {
      ctx.strokeStyle = css(colors.faint);
      ctx.moveTo(3, 3);
      ctx.lineTo(11, 11);
      ctx.moveTo(11, 3);
      ctx.lineTo(3, 11);
      ctx.stroke();
    });
  });
}
