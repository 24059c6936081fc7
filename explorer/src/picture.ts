// The charts and the ladder diagrams as one picture: SVG, and PNG from it.
import type uPlot from "uplot";
import { drawLadder } from "./ladder-canvas";
import { MARK_DASHES } from "./chart-marks";
import { theme, worldColour } from "./palette";
import { SvgContext, svgCanvas, svgFile } from "./svg";
import type { World } from "./world";

const WIDTH = 1000;
const CHART = 230;
const LADDER = 420;
const HEADING = 26;
const LEFT = 56;
const LEGEND = 40;
const LEGEND_ROW = 16;
/** Pixels of a PNG per unit of the picture. */
const SHARPNESS = 2;

/** A chart: its title, and the plot with its data. */
export interface Chart {
  title: string;
  plot: uPlot;
  /** Times of interventions in seconds. */
  marks: readonly number[];
}

/** Returns the charts as they are shown, and the ladder diagram of each world over the last `span` seconds. */
export function pictureOf(charts: readonly Chart[], worlds: readonly World[], span: number): string {
  const groups: string[] = [];
  let y = 0;
  const add = (context: SvgContext, height: number): void => {
    groups.push(context.group(0, y));
    y += height;
  };
  for (const chart of charts) {
    const { context, height } = chartOf(chart);
    add(context, height);
  }
  for (const [place, world] of worlds.entries()) {
    add(heading(`${world.label}: ladder diagram`), HEADING);
    const { canvas, context } = svgCanvas(WIDTH, LADDER);
    drawLadder(canvas, world, { span, colour: worldColour(place), flow: world.groups.main, packets: true });
    add(context, LADDER + 10);
  }
  return svgFile(WIDTH, y, getComputedStyle(document.body).backgroundColor, groups);
}

/** Returns a picture in SVG as PNG. */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * SHARPNESS;
  canvas.height = image.height * SHARPNESS;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture is too large for PNG: export SVG")))),
  );
}

function heading(text: string): SvgContext {
  const context = new SvgContext();
  context.fillStyle = theme().text;
  context.font = "bold 14px";
  context.fillText(text, 10, 18);
  return context;
}

function chartOf({ title, plot, marks }: Chart): { context: SvgContext; height: number } {
  const context = heading(title);
  const colours = theme();
  const [time = [], ...rows] = plot.data;
  const [start, end] = [time[0] ?? 0, Math.max(time.at(-1) ?? 1, (time[0] ?? 0) + 1e-3)];
  const high = Math.max(plot.scales["y"]?.max ?? 1, 1e-9);
  const [top, bottom] = [HEADING, CHART - LEGEND];
  const x = (at: number): number => LEFT + ((at - start) / (end - start)) * (WIDTH - LEFT - 14);
  const y = (value: number): number => bottom - (value / high) * (bottom - top);
  context.font = "11px";
  context.strokeStyle = colours.line;
  context.lineWidth = 0.5;
  const line = (x1: number, y1: number, x2: number, y2: number): void => {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  };
  for (const value of ticks(0, high, 4)) {
    line(LEFT, y(value), WIDTH - 14, y(value));
    context.textAlign = "right";
    context.fillText(String(value), LEFT - 6, y(value) + 4);
  }
  for (const value of ticks(start, end, 10)) {
    line(x(value), top, x(value), bottom);
    context.textAlign = "center";
    context.fillText(`${value} s`, x(value), bottom + 14);
  }
  context.strokeStyle = colours.text;
  context.setLineDash(MARK_DASHES);
  for (const mark of marks) if (mark >= start && mark <= end) line(x(mark), top, x(mark), bottom);
  context.textAlign = "left";
  let [legend, baseline] = [LEFT, CHART - 12];
  for (const [place, row] of rows.entries()) {
    const series = plot.series[place + 1]!;
    context.strokeStyle = String(typeof series.stroke === "function" ? series.stroke(plot, place + 1) : series.stroke);
    context.lineWidth = series.width ?? 1.5;
    context.setLineDash(series.dash ?? []);
    trace(context, time, row, x, y);
    const label = String(series.label);
    const room = 44 + context.measureText(label).width;
    if (legend + room > WIDTH) [legend, baseline] = [LEFT, baseline + LEGEND_ROW];
    line(legend, baseline, legend + 22, baseline);
    context.fillText(label, legend + 28, baseline + 4);
    legend += room;
  }
  return { context, height: baseline + 12 };
}

/** Draws a line with the extremes of each half pixel. */
function trace(
  context: SvgContext,
  time: ArrayLike<number>,
  row: ArrayLike<number | null | undefined>,
  x: (at: number) => number,
  y: (value: number) => number,
): void {
  context.beginPath();
  let [column, low, high] = [NaN, 0, 0];
  let drawing = false;
  for (let index = 0; index < time.length; index += 1) {
    const value = row[index];
    if (value === null || value === undefined) {
      drawing = false;
      continue;
    }
    const [at, height] = [x(time[index]!), y(value)];
    const here = Math.round(at * 2);
    if (drawing && here === column && height >= low && height <= high) continue;
    [low, high] = drawing && here === column ? [Math.min(low, height), Math.max(high, height)] : [height, height];
    column = here;
    if (drawing) context.lineTo(at, height);
    else context.moveTo(at, height);
    drawing = true;
  }
  context.stroke();
}

/** Returns about `count` round values in a range. */
function ticks(low: number, high: number, count: number): number[] {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  const found: number[] = [];
  for (let number = Math.ceil(low / step); number * step <= high; number += 1) found.push(Number((number * step).toPrecision(12)));
  return found;
}
