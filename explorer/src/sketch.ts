// A prediction: a curve that the reader draws in a chart before the scene plays, and its comparison with the measured one.
import type uPlot from "uplot";
import { INTERVAL_S, type Column, type Columns } from "./columns";
import { theme } from "./palette";

/** What the reader predicts: a column of the first configuration. */
export interface Plan {
  /** Place of the chart. */
  chart: number;
  column: keyof Columns;
  /** Name and unit of the column in sentences. */
  what: string;
  unit: string;
  /** Seconds from the start, and the largest value of the axis. */
  span: number;
  high: number;
}

/** The curve has this number of parts. */
const PARTS = 100;
/** Part of the axis by which an arrow key moves the value. */
const KEY_STEP = 0.05;
const [WIDTH, DASH] = [3, [2, 4]];

export class Sketch {
  private plan: Plan | undefined;
  private values: Column = [];
  /** The point drawn last, from which arrow keys and continued lines go on. */
  private last: { part: number; value: number } | undefined;
  /** Whether the reader can draw: only before the start. */
  private open = false;

  /** `changed` is called after each change of the curve. */
  constructor(private readonly changed: () => void) {}

  /** Starts a prediction. */
  begin(plan: Plan): void {
    this.plan = plan;
    this.values = Array.from({ length: PARTS }, () => null);
    this.last = undefined;
    this.open = true;
  }

  /** Ends the drawing, when the scene plays. A prediction without a curve ends as a whole. */
  close(): void {
    this.open = false;
    if (!this.drawn) this.plan = undefined;
  }

  /** Removes the prediction. */
  remove(): void {
    this.plan = undefined;
    this.open = false;
  }

  /** Whether there is a curve. */
  get drawn(): boolean {
    return this.plan !== undefined && this.values.some((value) => value !== null);
  }

  /** Returns the end of a drawn prediction in s, or Infinity without one. */
  get end(): number {
    return this.drawn ? this.plan!.span : Infinity;
  }

  /** Returns the ranges of a chart with a prediction until its end; undefined for other charts. */
  ranges(chart: number, now: number): { span: number; high: number } | undefined {
    const { plan } = this;
    return plan && plan.chart === chart && now <= plan.span + INTERVAL_S ? plan : undefined;
  }

  /** Sets the value at a time; without a pause since the last one, also between both. */
  put(time: number, value: number, continued: boolean): void {
    const { plan } = this;
    if (!plan || !this.open) return;
    const part = Math.max(0, Math.min(PARTS - 1, Math.floor((time / plan.span) * PARTS)));
    const within = Math.max(0, Math.min(plan.high, value));
    const from = continued && this.last ? this.last : { part, value: within };
    const steps = Math.abs(part - from.part);
    for (let step = 0; step <= steps; step += 1) {
      const share = steps === 0 ? 1 : step / steps;
      this.values[from.part + Math.sign(part - from.part) * step] = from.value + (within - from.value) * share;
    }
    this.last = { part, value: within };
    this.changed();
  }

  /** Returns the predicted value at a time; null where nothing is drawn. */
  at(time: number): number | null {
    if (!this.plan) return null;
    return this.values[Math.min(PARTS - 1, Math.floor((time / this.plan.span) * PARTS))] ?? null;
  }

  /** Returns a sentence: what to do, or how the measured column differs from the curve. Empty without a prediction. */
  describe(columns: Columns | undefined, playing: boolean): string {
    const { plan } = this;
    if (!plan) return "";
    const waiting = "Prediction: the dotted curve is yours.";
    if (playing) return waiting;
    const { what, unit, span, high } = plan;
    if (this.open && !this.drawn) return `Prediction: draw ${what} in its chart, for ${span} s and up to ${high} ${unit}, then press Play.`;
    if (this.open) return "Prediction: press Play to compare it with the measurement.";
    const both: [number, number][] = [];
    for (const [place, measured] of (columns?.[plan.column] ?? []).entries()) {
      const time = place * INTERVAL_S;
      const predicted = time <= span ? this.at(time) : null;
      if (predicted !== null && measured !== null) both.push([predicted, measured]);
    }
    if (both.length === 0) return waiting;
    const sum = both.reduce((total, [predicted, measured]) => total + Math.abs(predicted - measured), 0);
    const measured = both.map(([, value]) => value);
    const [least, most] = [Math.min(...measured), Math.max(...measured)].map(short);
    return `Your prediction and the measurement of ${what} differ by ${short(sum / both.length)} ${unit} on average. Measured: ${least} to ${most} ${unit}.`;
  }

  /** Draws the curve in a chart, and lets the reader draw it by pointer or arrow keys. */
  plugin(chart: number): uPlot.Plugin {
    return {
      hooks: {
        ready: (plot) => this.listen(plot, chart),
        draw: (plot) => this.draw(plot, chart),
      },
    };
  }

  private mine(chart: number): boolean {
    return this.plan?.chart === chart && this.open;
  }

  private listen(plot: uPlot, chart: number): void {
    const { over } = plot;
    let drawing = false;
    const put = (event: PointerEvent, continued: boolean): void => {
      const { left, top } = over.getBoundingClientRect();
      this.put(plot.posToVal(event.clientX - left, "x"), plot.posToVal(event.clientY - top, "y"), continued);
    };
    over.addEventListener("pointerdown", (event) => {
      if (!this.mine(chart)) return;
      event.preventDefault();
      over.setPointerCapture(event.pointerId);
      drawing = true;
      put(event, false);
    });
    over.addEventListener("pointermove", (event) => drawing && put(event, true));
    for (const kind of ["pointerup", "pointercancel"] as const) over.addEventListener(kind, () => (drawing = false));
    // Otherwise the chart selects a range.
    over.addEventListener("mousedown", (event) => this.mine(chart) && event.stopImmediatePropagation(), true);
    over.addEventListener("keydown", (event) => this.mine(chart) && this.key(event));
    this.mark(plot, chart);
  }

  private key(event: KeyboardEvent): void {
    const { plan } = this;
    const [turn, rise] = [{ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0, { ArrowDown: -1, ArrowUp: 1 }[event.key] ?? 0];
    if (!plan || (turn === 0 && rise === 0) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const { part, value } = (this.last ??= { part: 0, value: 0 });
    const place = Math.max(0, Math.min(PARTS - 1, part + (rise === 0 ? turn : 0)));
    this.put(((place + 0.5) / PARTS) * plan.span, value + rise * KEY_STEP * plan.high, rise === 0);
  }

  /** Makes the chart focusable while the reader can draw in it. */
  private mark(plot: uPlot, chart: number): void {
    const on = this.mine(chart);
    plot.root.classList.toggle("predicted", this.plan?.chart === chart);
    plot.over.classList.toggle("sketch", on);
    if (on === (plot.over.tabIndex === 0)) return;
    plot.over.tabIndex = on ? 0 : -1;
    if (!on) return ["role", "aria-label"].forEach((name) => plot.over.removeAttribute(name));
    plot.over.setAttribute("role", "application");
    plot.over.setAttribute("aria-label", `Prediction of ${this.plan!.what}: the arrow keys move to the right, to the left, up and down.`);
  }

  private draw(plot: uPlot, chart: number): void {
    this.mark(plot, chart);
    if (this.plan?.chart !== chart) return;
    const { ctx, bbox } = plot;
    const ratio = window.devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = theme().text;
    ctx.lineWidth = WIDTH * ratio;
    ctx.setLineDash(DASH.map((length) => length * ratio));
    ctx.beginPath();
    let pen = false;
    for (const [part, value] of this.values.entries()) {
      if (value !== null) {
        const x = plot.valToPos(((part + 0.5) / PARTS) * this.plan.span, "x", true);
        const y = plot.valToPos(value, "y", true);
        if (pen) ctx.lineTo(x, y);
        else ctx.moveTo(x, y);
      }
      pen = value !== null;
    }
    ctx.stroke();
    ctx.restore();
  }
}

const short = (value: number): string => String(Number(value.toPrecision(value >= 100 ? 3 : 2)));
