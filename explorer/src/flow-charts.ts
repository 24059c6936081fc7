// Charts of single flows and queues, for each world with several, and of the subflows of flow 1.
import uPlot from "uplot";
import { marksPlugin, type Marks } from "./chart-marks";
import { axisStyle, TIME_AXIS } from "./chart-style";
import { INTERVAL_S, type Column } from "./columns";
import { flowColour } from "./palette";
import type { World } from "./world";

const HEIGHT = 150;
/** Further flows have no line. */
const MOST_FLOWS = 12;

interface Line {
  label: string;
  column: Column;
}

interface Panel {
  title: string;
  lines: readonly Line[];
}

interface Plot {
  /** World, title and labels: what requires another chart when it changes. */
  key: string;
  chart: uPlot;
}

/** Returns the charts of a world at present. */
function panelsOf(world: World): Panel[] {
  const name = world.label;
  const found: Panel[] = [];
  const flows = world.flows.slice(0, MOST_FLOWS);
  const lines = (key: "goodput" | "cwnd" | "rtt" | "queueing" | "marks"): Line[] =>
    flows.map((flow, number) => ({ label: world.groups.labelOf(number), column: flow[key] }));
  if (world.flows.length > 1) {
    found.push({ title: `${name}: goodput of each flow (Mbit/s)`, lines: lines("goodput") });
    found.push({ title: `${name}: cwnd of each flow (packets)`, lines: lines("cwnd") });
  }
  if (world.groups.several) {
    found.push({ title: `${name}: queueing delay of each flow (ms)`, lines: lines("queueing") });
    found.push({ title: `${name}: RTT of each flow (ms)`, lines: lines("rtt") });
  }
  if (world.marked > 0) found.push({ title: `${name}: marks of each flow (packets per 100 ms)`, lines: lines("marks") });
  const { bottlenecks, links } = world.network;
  if (bottlenecks.length > 1) {
    const lines = bottlenecks.map((link, place) => ({ label: links[link]!, column: world.queues[place]! }));
    found.push({ title: `${name}: queue of each bottleneck (packets)`, lines });
  }
  if (world.subflows.length > 0) {
    const lines = (key: "cwnd" | "rtt"): Line[] =>
      world.subflows.slice(0, MOST_FLOWS).map((subflow, number) => ({
        label: `subflow ${number + 1} (path ${subflow.path + 1})`,
        column: subflow[key],
      }));
    found.push({ title: `${name}: cwnd of each subflow (packets)`, lines: lines("cwnd") });
    found.push({ title: `${name}: RTT of each subflow (ms)`, lines: lines("rtt") });
    found.push({ title: `${name}: data that waits for earlier data (packets)`, lines: [{ label: "receiver", column: world.early }] });
  }
  return found;
}

export class FlowCharts {
  private worlds: readonly World[] = [];
  private plots: Plot[] = [];
  private panels: Panel[] = [];

  constructor(
    private readonly parent: HTMLElement,
    private readonly marks: Marks,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
  }

  reset(worlds: readonly World[]): void {
    this.worlds = worlds;
    for (const { chart } of this.plots) chart.destroy();
    this.plots = [];
    this.panels = [];
  }

  /** Returns the number of charts. */
  get count(): number {
    return this.plots.length;
  }

  /** Replaces the charts if flows, subflows or marks require others. */
  update(): void {
    const panels = this.worlds.flatMap((world, place) =>
      panelsOf(world).map((panel) => ({ ...panel, key: `${place} ${panel.title} ${panel.lines.map(({ label }) => label).join()}` })),
    );
    if (panels.map(({ key }) => key).join("\n") !== this.plots.map(({ key }) => key).join("\n")) {
      this.reset(this.worlds);
      const width = this.width();
      this.plots = panels.map((panel) => ({ key: panel.key, chart: this.add(panel, width) }));
    }
    this.panels = panels;
  }

  /** Draws the last `span` seconds, or all with 0, in one chart or in all. */
  draw(span: number, only?: number): void {
    if (this.plots.length === 0) return;
    const end = Math.max(...this.worlds.map((world) => world.columns.goodput.length), 2);
    const start = span > 0 ? Math.max(0, end - Math.round(span / INTERVAL_S)) : 0;
    const time = Array.from({ length: end - start }, (_, place) => (start + place) * INTERVAL_S);
    this.panels.forEach(({ lines }, place) => {
      if (only !== undefined && place !== only) return;
      const rows = lines.map(({ column }) => {
        const part = column.slice(start, end);
        while (part.length < time.length) part.push(null);
        return part;
      });
      this.plots[place]!.chart.setData([time, ...rows] as uPlot.AlignedData);
    });
  }

  private add({ title, lines }: Panel, width: number): uPlot {
    const axis = axisStyle();
    const series: uPlot.Series[] = [{ label: "time", value: (_, time) => (time === null ? "–" : `${time.toFixed(2)} s`) }];
    lines.forEach(({ label }, number) =>
      series.push({
        label,
        stroke: flowColour(number),
        width: 1.5,
        points: { show: false },
        value: (_, value) => (value === null || value === undefined ? "–" : value.toFixed(1)),
      }),
    );
    const options: uPlot.Options = {
      title,
      width,
      height: HEIGHT,
      series,
      plugins: [marksPlugin(this.marks)],
      cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, high) => [0, Math.max(1, (high ?? 1) * 1.05)] } },
      axes: [{ ...axis, size: TIME_AXIS }, { ...axis, size: 46 }],
    };
    return new uPlot(options, [[], ...lines.map(() => [])] as uPlot.AlignedData, this.parent);
  }

  private resize(): void {
    const width = this.width();
    for (const { chart } of this.plots) if (chart.width !== width) chart.setSize({ width, height: HEIGHT });
  }

  private width(): number {
    const columns = this.parent.clientWidth >= 900 ? 2 : 1;
    return Math.floor((this.parent.clientWidth - 12 * (columns - 1)) / columns);
  }
}
