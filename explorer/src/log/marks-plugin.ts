// Marks in charts: losses and timeouts at the upper edge, and changes of the controller's state as lines with names.
import type uPlot from "uplot";
import { LOSS, RETRANSMISSION, theme } from "../palette";
import { MARK_DASHES } from "../chart-marks";
import type { Mark } from "./connection";

const TICK = 6;
const FONT = 11;

export const marksPlugin = (marks: readonly Mark[]): uPlot.Plugin => ({
  hooks: {
    draw: (plot) => {
      const { ctx, bbox } = plot;
      const { min, max } = plot.scales["x"]!;
      const ratio = window.devicePixelRatio || 1;
      ctx.save();
      ctx.font = `${FONT * ratio}px system-ui, sans-serif`;
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      let free = -Infinity;
      let last = NaN;
      for (const { time, kind, label } of marks) {
        if (time < min! || time > max!) continue;
        const x = Math.round(plot.valToPos(time, "x", true));
        if (kind === "state") {
          ctx.strokeStyle = ctx.fillStyle = theme().text;
          ctx.lineWidth = ratio;
          ctx.setLineDash(MARK_DASHES.map((length) => length * ratio));
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          const width = ctx.measureText(label).width;
          if (x > free && x + width < bbox.left + bbox.width) {
            ctx.fillText(label, x + 3 * ratio, bbox.top + (TICK + 2) * ratio);
            free = x + width + 8 * ratio;
          }
        } else if (x !== last) {
          last = x;
          ctx.fillStyle = kind === "loss" ? LOSS : RETRANSMISSION;
          ctx.fillRect(x - ratio / 2, bbox.top, 1.5 * ratio, (kind === "loss" ? TICK : 2 * TICK) * ratio);
        }
      }
      ctx.restore();
    },
  },
});
