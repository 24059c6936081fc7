// Draws points straight from columns: charts of 300,000 points need no element or path for each.
import type uPlot from "uplot";
import { firstAtOrAfter } from "./search";

export type Shape = "bar" | "dot" | "ring" | "cross" | "steps" | "line";

/** A column of points. `colour` returns the present colour of the theme. */
export interface Layer {
  label: string;
  shape: Shape;
  colour: () => string;
  time: readonly number[];
  y: readonly number[];
  /** Upper ends of bars. */
  top?: readonly number[];
}

/** Side of a point in CSS pixels, and that of few points. */
const [SIDE, LARGE_SIDE] = [3, 5];
const FEW = 400;
const CROSS = 3.5;

/** Draws the layers in their order. */
export const pointsPlugin = (layers: readonly Layer[]): uPlot.Plugin => ({
  hooks: {
    draw: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const layer of layers) {
        if (layer.shape === "steps" || layer.shape === "line") drawLine(plot, layer);
        else drawPoints(plot, layer);
      }
      ctx.restore();
    },
  },
});

/** Returns a function from values to pixels of the canvas; uPlot's takes longer per call. */
function scale(plot: uPlot, axis: "x" | "y"): (value: number) => number {
  const { min, max } = plot.scales[axis]!;
  const [from, to] = [plot.valToPos(min!, axis, true), plot.valToPos(max!, axis, true)];
  const factor = (to - from) / (max! - min!);
  return (value) => from + (value - min!) * factor;
}

function drawPoints(plot: uPlot, { shape, colour, time, y, top }: Layer): void {
  const { ctx, bbox } = plot;
  const ratio = window.devicePixelRatio || 1;
  const { min, max } = plot.scales["x"]!;
  const [x, height] = [scale(plot, "x"), scale(plot, "y")];
  const [start, end] = [firstAtOrAfter(time, min!), firstAtOrAfter(time, max! + 1e-12)];
  const side = (end - start > FEW ? SIDE : LARGE_SIDE) * ratio;
  // One point per pixel suffices.
  const width = Math.ceil(bbox.width) + 1;
  const drawn = new Uint8Array(width * (Math.ceil(bbox.height) + 1));
  ctx.fillStyle = ctx.strokeStyle = colour();
  ctx.lineWidth = (shape === "ring" ? 1 : 1.5) * ratio;
  ctx.setLineDash([]);
  if (shape === "cross") ctx.beginPath();
  for (let place = start; place < end; place++) {
    const [across, low] = [x(time[place]!), height(y[place]!)];
    const high = top === undefined ? low : height(top[place]!);
    const [column, row] = [Math.floor(across - bbox.left), Math.floor(low - bbox.top)];
    if (column < 0 || column >= width || row < 0 || row > bbox.height) {
      if (high > bbox.top + bbox.height || low < bbox.top) continue;
    } else {
      const pixel = row * width + column;
      if (drawn[pixel] === 1) continue;
      drawn[pixel] = 1;
    }
    if (shape === "cross") {
      const arm = CROSS * ratio;
      ctx.moveTo(across - arm, low - arm);
      ctx.lineTo(across + arm, low + arm);
      ctx.moveTo(across - arm, low + arm);
      ctx.lineTo(across + arm, low - arm);
    } else if (shape === "bar") {
      const tall = Math.max(side, low - high);
      ctx.fillRect(across - side / 2, Math.min(high, low - tall), side, tall);
    } else if (shape === "ring") {
      ctx.strokeRect(across - side / 2, low - side / 2, side, side);
    } else {
      ctx.fillRect(across - side / 2, low - side / 2, side, side);
    }
  }
  if (shape === "cross") ctx.stroke();
}

function drawLine(plot: uPlot, { shape, colour, time, y }: Layer): void {
  const { ctx } = plot;
  const { min, max } = plot.scales["x"]!;
  const [x, height] = [scale(plot, "x"), scale(plot, "y")];
  const end = Math.min(time.length, firstAtOrAfter(time, max!) + 1);
  ctx.strokeStyle = colour();
  ctx.lineWidth = 1.5 * (window.devicePixelRatio || 1);
  ctx.setLineDash([]);
  ctx.beginPath();
  let before: number | undefined;
  for (let place = Math.max(0, firstAtOrAfter(time, min!) - 1); place < end; place++) {
    const [across, up] = [x(time[place]!), height(y[place]!)];
    if (before === undefined) ctx.moveTo(across, up);
    else {
      if (shape === "steps") ctx.lineTo(across, before);
      ctx.lineTo(across, up);
    }
    before = up;
  }
  if (shape === "steps" && before !== undefined) ctx.lineTo(x(max!), before);
  ctx.stroke();
}
