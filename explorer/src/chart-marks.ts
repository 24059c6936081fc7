// Vertical lines in charts at the times of interventions.
import type uPlot from "uplot";
import { theme } from "./palette";

/** Dashes of the lines in CSS pixels. */
export const MARK_DASHES: readonly [number, number] = [1, 4];

/** Returns the times in seconds. */
export type Marks = () => readonly number[];

/** Draws the lines under those of a chart. */
export const marksPlugin = (marks: Marks): uPlot.Plugin => ({
  hooks: {
    drawClear: (plot) => {
      const { ctx, bbox } = plot;
      const { min, max } = plot.scales["x"]!;
      const ratio = window.devicePixelRatio || 1;
      ctx.save();
      ctx.strokeStyle = theme().text;
      ctx.lineWidth = ratio;
      ctx.setLineDash(MARK_DASHES.map((length) => length * ratio));
      for (const time of marks()) {
        if (time < (min ?? 0) || time > (max ?? 0)) continue;
        const x = Math.round(plot.valToPos(time, "x", true));
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    },
  },
});
