// Charts of a trace on one time axis.
import uPlot from "uplot";
import { axisStyle, legendMarkers, TIME_AXIS } from "../chart-style";
import { LOSS, RETRANSMISSION, worldColour } from "../palette";
import type { Connection } from "./connection";
import { count, duration } from "./format";
import type { Metric } from "./metrics";
import { marksPlugin } from "./marks-plugin";
import type { NumberSpace } from "./number-space";
import { pointsPlugin, type Layer } from "./points-plugin";
import { intervalOf, ratesOf } from "./rates";
import { firstAtOrAfter } from "./search";
import type { Stream } from "./sequences";
import type { View } from "./view";

const [TALL, LOW] = [260, 160];
/** Pixels of a digit, and of a tick with its gap. */
const [DIGIT, TICK] = [7.5, 18];
/** A movement of this many pixels is a click, not a selection. */
const STILL = 2;

const PACKETS_NOTE = "Each dot is a packet. From its transmission to its acknowledgement takes one RTT: the horizontal distance.";
const SEGMENTS_NOTE = "Each bar is a segment. The vertical distance from acknowledged to sent is the data in flight.";

/** A chart of numbers. */
interface Group {
  title: string;
  layers: readonly Layer[];
  note?: string;
}

interface Line {
  label: string;
  colour: string;
  dash?: number[];
  values: readonly (number | null)[];
}

const blue = (): string => worldColour(0);
const orange = (): string => worldColour(1);
const green = (): string => worldColour(2);

export class LogCharts {
  private plots: uPlot[] = [];
  /** Computes what depends on the period. */
  private update: () => void = () => {};
  private connection?: Connection | undefined;
  private space?: NumberSpace | undefined;

  /** @param choose Receives the time of a click in s. */
  constructor(
    private readonly parent: HTMLElement,
    private readonly view: View,
    private readonly choose: (time: number) => void,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
    view.onChange(() => this.zoom());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show(this.connection, this.space));
  }

  /** Draws the charts that the trace has data for, with the numbers of one packet number space. */
  show(connection: Connection | undefined, space: NumberSpace | undefined): void {
    for (const plot of this.plots) plot.destroy();
    this.parent.replaceChildren();
    this.plots = [];
    this.update = () => {};
    [this.connection, this.space] = [connection, space];
    if (connection === undefined) return;
    const { sent, received } = connection;
    const groups = [sentGroup(connection, space), receivedGroup(connection, space)].filter((group) => group !== undefined);
    // The direction with more bytes is the first chart, and the other one the last.
    if (received.total > sent.total) groups.reverse();
    const largest = Math.max(1000, ...groups.flatMap(({ layers }) => layers.map((layer) => highest(layer))));
    const axis = Math.ceil(count(largest).length * DIGIT + TICK);
    const [first, ...others] = groups;
    if (first) this.addPoints(first, axis);
    this.addWindows(connection, axis);
    this.addRtts(connection, axis);
    this.addRates(connection, axis);
    for (const group of others) this.addPoints(group, axis);
    this.zoom();
  }

  private addPoints({ title, layers, note }: Group, axis: number): void {
    const box = this.box(title);
    const high = Math.max(...layers.map((layer) => highest(layer)));
    const low = Math.min(...layers.map(({ y }) => lowest(y)));
    const legend = document.createElement("ul");
    legend.className = "log-legend";
    for (const { label, shape, colour } of layers) {
      const item = document.createElement("li");
      item.className = shape;
      item.style.setProperty("--colour", colour());
      item.textContent = label;
      legend.append(item);
    }
    const ends = this.view.whole;
    const y = this.visibleRange(layers, low, high);
    const series: uPlot.Series[] = [{}, { show: true, paths: () => null, points: { show: false } }];
    this.plots.push(this.plot(box, TALL, axis, series, [[...ends], [low, high]], y, [pointsPlugin(layers)], false));
    box.append(legend);
    if (note === undefined) return;
    const caption = document.createElement("figcaption");
    caption.textContent = note;
    box.append(caption);
  }

  /** Returns the range of the y axis: that of the points of the present period. */
  private visibleRange(layers: readonly Layer[], low: number, high: number): () => uPlot.Range.MinMax {
    return () => {
      const [from, to] = this.view.range;
      let [least, most] = [Infinity, -Infinity];
      if (this.view.zoomed) {
        for (const { time, y, top, shape } of layers) {
          if (shape === "steps") continue;
          for (let place = firstAtOrAfter(time, from); place < time.length && time[place]! <= to; place++) {
            least = Math.min(least, y[place]!);
            most = Math.max(most, top?.[place] ?? y[place]!);
          }
        }
      }
      if (least > most) [least, most] = [low, high];
      const margin = Math.max(1, (most - least) * 0.04);
      return [least - margin < 0 ? 0 : least - margin, most + margin];
    };
  }

  private addWindows({ metrics, marks }: Connection, axis: number): void {
    const lines: Line[] = [];
    const add = (metric: Metric, label: string, colour: string, dash: number[]): void => {
      if (metrics.has(metric)) lines.push({ label, colour, dash, values: metrics.columns[metric].map((value) => (value === null ? null : value / 1e3)) });
    };
    add("congestionWindow", "congestion window", blue(), []);
    add("bytesInFlight", "bytes in flight", green(), [2, 3]);
    add("ssthresh", "ssthresh", orange(), [6, 4]);
    if (lines.length > 0) this.addLines("Windows (kB)", metrics.time, lines, axis, true, [marksPlugin(marks)]);
  }

  private addRtts({ metrics, rtts, marks }: Connection, axis: number): void {
    const lines: Line[] = [];
    const add = (metric: Metric, label: string, colour: string, dash: number[]): void => {
      if (metrics.has(metric)) lines.push({ label, colour, dash, values: metrics.columns[metric] });
    };
    add("latestRtt", "latest RTT", blue(), []);
    add("smoothedRtt", "smoothed RTT", orange(), [6, 4]);
    add("minRtt", "smallest RTT", green(), [2, 3]);
    if (lines.length > 0) this.addLines("RTT (ms)", metrics.time, lines, axis, true, [marksPlugin(marks)]);
    else if (rtts.time.length > 0) {
      const values = rtts.value.map((value) => value * 1e3);
      this.addLines("RTT of packets and their ACKs (ms)", rtts.time, [{ label: "RTT", colour: blue(), values }], axis, false, [marksPlugin(marks)]);
    }
  }

  private addRates(connection: Connection, axis: number): void {
    const { sent, received } = connection;
    const columns = [
      { label: "sent", colour: blue(), dash: [], time: sent.time, bytes: sent.bytes },
      { label: "new data sent", colour: blue(), dash: [6, 4], time: sent.time, bytes: sent.fresh },
      { label: "received", colour: orange(), dash: [], time: received.time, bytes: received.bytes },
      { label: "new data received", colour: orange(), dash: [2, 3], time: received.time, bytes: received.fresh },
    ].filter(({ bytes }) => bytes.some((size) => size > 0));
    if (columns.length === 0) return;
    const box = this.box("Rate (Mbit/s)");
    const series: uPlot.Series[] = [timeSeries, ...columns.map(({ label, colour, dash }) => lineSeries({ label, colour, dash, values: [] }, true))];
    const plot = this.plot(box, LOW, axis, series, [[], ...columns.map(() => [])], upFromZero, [], true);
    this.plots.push(plot);
    this.update = () => {
      const interval = intervalOf(this.view.range);
      const rates = ratesOf(this.view.range, interval, columns);
      plot.setData([rates.time, ...rates.columns], false);
      box.querySelector("h2")!.textContent = `Rate (Mbit/s), mean of ${duration(interval)}`;
    };
  }

  private addLines(title: string, time: readonly number[], lines: readonly Line[], axis: number, steps: boolean, plugins: uPlot.Plugin[]): void {
    const series = [timeSeries, ...lines.map((line) => lineSeries(line, steps))];
    // Steps keep their value until the end of the log.
    const end = steps && time.length > 0 && time.at(-1)! < this.view.whole[1] ? 1 : 0;
    const times = end ? [...time, this.view.whole[1]] : time;
    const columns = lines.map(({ values }) => (end ? [...values, values.at(-1) ?? null] : values));
    const data = [times, ...columns] as uPlot.AlignedData;
    this.plots.push(this.plot(this.box(title), LOW, axis, series, data, upFromZero, plugins, true));
  }

  private box(title: string): HTMLElement {
    const box = document.createElement("figure");
    const heading = document.createElement("h2");
    heading.textContent = title;
    box.append(heading);
    box.setAttribute("aria-label", title);
    this.parent.append(box);
    return box;
  }

  private plot(
    parent: HTMLElement,
    height: number,
    axis: number,
    series: uPlot.Series[],
    data: uPlot.AlignedData,
    y: uPlot.Range.Function | (() => uPlot.Range.MinMax),
    plugins: uPlot.Plugin[],
    legend: boolean,
  ): uPlot {
    const style = axisStyle();
    const options: uPlot.Options = {
      width: this.parent.clientWidth,
      height,
      series,
      plugins,
      legend: { show: legend, markers: legendMarkers() },
      cursor: {
        sync: { key: "log" },
        drag: { x: true, y: false, setScale: false },
        points: { show: legend },
        bind: {
          dblclick: () => () => (this.view.showAll(), null),
        },
      },
      scales: { x: { time: false, range: () => [...this.view.range] }, y: { range: y } },
      axes: [{ ...style, size: TIME_AXIS, values: (_, times) => times.map((time) => `${Number(time.toFixed(9))} s`) }, { ...style, size: axis }],
    };
    const plot = new uPlot(options, data, parent);
    plot.over.addEventListener("mousedown", (down) => {
      if (down.button !== 0) return;
      document.addEventListener("mouseup", (up) => this.select(plot, down.clientX, up.clientX), { once: true });
    });
    return plot;
  }

  /** Zooms to what was dragged over, or chooses an event with a click. */
  private select(plot: uPlot, ...ends: [number, number]): void {
    const { left, width } = plot.over.getBoundingClientRect();
    const [from, to] = ends.map((x) => plot.posToVal(Math.min(width, Math.max(0, x - left)), "x")) as [number, number];
    if (Math.abs(ends[0] - ends[1]) <= STILL) this.choose(to);
    else this.view.zoom(Math.min(from, to), Math.max(from, to));
    // After uPlot's own listeners, in all charts.
    setTimeout(() => this.plots.forEach((one) => one.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)));
  }

  private zoom(): void {
    this.update();
    const [min, max] = this.view.range;
    for (const plot of this.plots) plot.setScale("x", { min, max });
  }

  private resize(): void {
    const width = this.parent.clientWidth;
    for (const plot of this.plots) if (plot.width !== width && width > 0) plot.setSize({ width, height: plot.height });
  }
}

const timeSeries: uPlot.Series = { label: "time", value: (_, time) => (time === null || time === undefined ? "–" : `${time.toFixed(6)} s`) };

const lineSeries = ({ label, colour, dash }: Line, steps: boolean): uPlot.Series => ({
  label,
  stroke: colour,
  width: 1.5,
  dash: dash ?? [],
  points: { show: false },
  ...(steps ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  value: (_, value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4)))),
});

const upFromZero = (_: uPlot, __: number | null, high: number | null): uPlot.Range.MinMax => [0, (high ?? 0) > 0 ? high! * 1.05 : 1];

/** Returns a chart of the layers with points, if any has. */
function groupOf(title: string, layers: readonly Layer[], note?: string): Group | undefined {
  const drawn = layers.filter(({ time }) => time.length > 0);
  return drawn.length > 0 ? { title, layers: drawn, ...(note === undefined ? {} : { note }) } : undefined;
}

function sentGroup({ sequences, lost: losses }: Connection, space: NumberSpace | undefined): Group | undefined {
  if (sequences.sent.segments > 0) return groupOf("Sent: sequence numbers (bytes)", layersOfStream(sequences.sent, true), SEGMENTS_NOTE);
  if (space === undefined) return undefined;
  const { name, sent, acknowledged, lost, unanswered } = space;
  const layers: Layer[] = [
    { label: "sent", shape: "dot", colour: blue, ...sent },
    { label: "acknowledged", shape: "ring", colour: green, ...acknowledged },
    losses > 0
      ? { label: "declared lost", shape: "cross", colour: () => LOSS, ...lost }
      : { label: "never acknowledged", shape: "cross", colour: () => LOSS, ...unanswered },
  ];
  return groupOf(`Sent: packet numbers (${name})`, layers, PACKETS_NOTE);
}

function receivedGroup({ sequences }: Connection, space: NumberSpace | undefined): Group | undefined {
  if (sequences.received.segments > 0) return groupOf("Received: sequence numbers (bytes)", layersOfStream(sequences.received, false));
  if (space === undefined) return undefined;
  return groupOf(`Received: packet numbers (${space.name})`, [{ label: "received", shape: "dot", colour: blue, ...space.received }]);
}

function layersOfStream({ data, retransmitted, acknowledged, sacked }: Stream, sent: boolean): Layer[] {
  return [
    { label: sent ? "sent" : "received", shape: "bar", colour: blue, ...data },
    { label: "selectively acknowledged (SACK)", shape: "bar", colour: () => SACKED, ...sacked },
    { label: sent ? "retransmitted" : "received, retransmission", shape: "bar", colour: () => RETRANSMISSION, ...retransmitted },
    { label: sent ? "acknowledged" : "acknowledged by this end", shape: "steps", colour: green, ...acknowledged },
  ];
}

const SACKED = "#aa3377";

const highest = ({ y, top }: Layer): number => (top ?? y).reduce((most, value) => Math.max(most, value), 0);
const lowest = (y: readonly number[]): number => y.reduce((least, value) => Math.min(least, value), Infinity);
