// Charts of single flows, for each world with several.
import uPlot from "uplot";
import { INTERVAL_S, type Columns } from "./columns";
import { flowColour, theme } from "./palette";
import { PROTOCOLS } from "./protocols";
import type { World } from "./world";

const HEIGHT = 150;
/** Further flows have no line. */
const MOST_FLOWS = 12;

const PANELS: readonly { key: keyof Columns; title: string }[] = [
  { key: "goodput", title: "goodput of each flow (Mbit/s)" },
  { key: "cwnd", title: "cwnd of each flow (packets)" },
];

interface Plot {
  world: World;
  key: keyof Columns;
  flows: number;
  chart: uPlot;
}

export class FlowCharts {
  private worlds: readonly World[] = [];
  private plots: Plot[] = [];

  constructor(private readonly parent: HTMLElement) {
    new ResizeObserver(() => this.plots.forEach(({ chart }) => chart.setSize({ width: this.width(), height: HEIGHT }))).observe(parent);
  }

  reset(worlds: readonly World[]): void {
    this.worlds = worlds;
    for (const { chart } of this.plots) chart.destroy();
    this.plots = [];
  }

  /** Draws the last `span` seconds, or all with 0. */
  draw(span: number): void {
    const flows = (world: World): number => Math.min(MOST_FLOWS, world.flows.length);
    const expected = this.worlds.filter((world) => flows(world) > 1);
    const same = expected.length * PANELS.length === this.plots.length && this.plots.every((plot) => plot.flows === flows(plot.world));
    if (!same) {
      this.reset(this.worlds);
      for (const world of expected) for (const panel of PANELS) this.plots.push(this.add(world, panel, flows(world)));
    }
    const end = Math.max(...this.worlds.map((world) => world.columns.goodput.length), 2);
    const start = span > 0 ? Math.max(0, end - Math.round(span / INTERVAL_S)) : 0;
    const time = Array.from({ length: end - start }, (_, place) => (start + place) * INTERVAL_S);
    for (const { world, key, chart, flows: count } of this.plots) {
      const rows = world.flows.slice(0, count).map((flow) => {
        const part = flow[key].slice(start, end);
        while (part.length < time.length) part.push(null);
        return part;
      });
      chart.setData([time, ...rows] as uPlot.AlignedData);
    }
  }

  private add(world: World, { key, title }: (typeof PANELS)[number], flows: number): Plot {
    const colours = theme();
    const axis = { stroke: colours.text, grid: { stroke: colours.line, width: 0.5 }, ticks: { stroke: colours.line } };
    const { pairs } = world.network;
    const series: uPlot.Series[] = [{ label: "time", value: (_, time) => (time === null ? "–" : `${time.toFixed(2)} s`) }];
    for (let flow = 0; flow < flows; flow += 1) {
      const host = pairs.length > 1 ? ` (${pairs[flow % pairs.length]![0].name})` : "";
      series.push({
        label: `flow ${flow + 1}${host}`,
        stroke: flowColour(flow),
        width: 1.5,
        points: { show: false },
        value: (_, value) => (value === null || value === undefined ? "–" : value.toFixed(1)),
      });
    }
    const options: uPlot.Options = {
      title: `${PROTOCOLS[world.name]!.label}: ${title}`,
      width: this.width(),
      height: HEIGHT,
      series,
      cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range: (_, __, high) => [0, Math.max(1, (high ?? 1) * 1.05)] } },
      axes: [{ ...axis }, { ...axis, size: 46 }],
    };
    const chart = new uPlot(options, [[], ...series.slice(1).map(() => [])] as uPlot.AlignedData, this.parent);
    return { world, key, flows, chart };
  }

  private width(): number {
    const columns = this.parent.clientWidth >= 900 ? 2 : 1;
    return Math.floor((this.parent.clientWidth - 12 * (columns - 1)) / columns);
  }
}
