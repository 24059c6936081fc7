// Charts of all worlds on one time axis, with a shared cursor.
import uPlot from "uplot";
import { marksPlugin, type Marks } from "./chart-marks";
import { axisStyle, legendMarkers, TIME_AXIS } from "./chart-style";
import { familyOf, PROTOCOLS } from "./protocols";
import { worldColour } from "./palette";
import { INTERVAL_S, type Columns } from "./columns";
import type { Chart } from "./picture";
import type { Sketch } from "./sketch";
import type { World } from "./world";

const HEIGHT = 150;

interface Panel {
  title: string;
  columns: { key: keyof Columns; label: string; dash?: number[] }[];
}

/** Lines of the configurations, which differ without colours, too: dashes, and widths in charts whose dashes are columns. */
const DASHES: readonly number[][] = [[], [9, 4], [2, 3]];
const WIDTHS = [1.5, 2.5, 3.5];

const PANELS: readonly Panel[] = [
  {
    title: "Windows (packets)",
    columns: [
      { key: "cwnd", label: "cwnd" },
      { key: "ssthresh", label: "ssthresh", dash: [6, 4] },
      { key: "inFlight", label: "in flight", dash: [2, 3] },
    ],
  },
  { title: "RTT (ms)", columns: [{ key: "rtt", label: "RTT" }] },
  { title: "Queue (packets)", columns: [{ key: "queue", label: "queue" }] },
  {
    title: "Goodput (Mbit/s)",
    columns: [
      { key: "goodput", label: "goodput" },
      { key: "received", label: "received", dash: [2, 3] },
    ],
  },
];

/** Returns the columns of a world: the window of ARQ has no ssthresh. */
const columnsOf = ({ columns }: Panel, { name }: World): Panel["columns"] =>
  columns.filter(({ key }) => key !== "ssthresh" || familyOf(name) !== "arq");

/** Returns the label of a line. Several configurations have their protocols in it, and flows with different protocols theirs. */
function labelOf(world: World, { key, label }: Panel["columns"][number], several: boolean): string {
  if (!world.groups.several) return several ? `${PROTOCOLS[world.name]!.label} ${label}` : label;
  const whose = ["queue", "goodput", "received"].includes(key) ? (several ? `${world.label}:` : "") : PROTOCOLS[world.name]!.label;
  return `${whose} ${label}${key === "goodput" ? " of all flows" : ""}`.trim();
}

export class Charts {
  private plots: uPlot[] = [];
  private worlds: World[] = [];

  constructor(
    private readonly parent: HTMLElement,
    private readonly marks: Marks,
    private readonly sketch: Sketch,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
  }

  /** Starts with the worlds of a scene. */
  reset(worlds: World[]): void {
    this.worlds = worlds;
    for (const plot of this.plots) plot.destroy();
    // One layout for all charts.
    const width = this.width();
    const axis = axisStyle();
    this.plots = PANELS.map((panel, chart) => {
      const series: uPlot.Series[] = [{ label: "time", value: (_, time) => (time === null ? "–" : `${time.toFixed(2)} s`) }];
      for (const [place, world] of worlds.entries()) {
        for (const column of columnsOf(panel, world)) {
          series.push({
            label: labelOf(world, column, worlds.length > 1),
            stroke: worldColour(place),
            width: panel.columns.length > 1 ? WIDTHS[place]! : WIDTHS[0]!,
            dash: panel.columns.length > 1 ? (column.dash ?? []) : DASHES[place]!,
            points: { show: false },
            value: (_, value) => (value === null || value === undefined ? "–" : value.toFixed(1)),
          });
        }
      }
      const options: uPlot.Options = {
        title: panel.title,
        width,
        height: HEIGHT,
        series,
        plugins: [marksPlugin(this.marks), this.sketch.plugin(chart)],
        legend: { markers: legendMarkers() },
        cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
        scales: {
          x: { time: false, range: (_, low, high) => (this.predicted(chart) ? [0, this.predicted(chart)!.span] : [low, high]) },
          y: { range: (_, __, high) => [0, Math.max(1, (high ?? 1) * 1.05, this.predicted(chart)?.high ?? 0)] },
        },
        axes: [{ ...axis, size: TIME_AXIS }, { ...axis, size: 46 }],
      };
      const plot = new uPlot(options, [[], ...series.slice(1).map(() => [])] as uPlot.AlignedData, this.parent);
      plot.root.setAttribute("role", "figure");
      plot.root.setAttribute("aria-label", `Chart: ${panel.title}`);
      return plot;
    });
  }

  /** Returns the ranges of a chart with a prediction. */
  private predicted(chart: number): { span: number; high: number } | undefined {
    return this.sketch.ranges(chart, Math.max(0, ...this.worlds.map(({ now }) => now)));
  }

  /** Returns the number of charts. */
  get count(): number {
    return this.plots.length;
  }

  /** Draws the last `span` seconds, or all with 0, in one chart or in all. */
  draw(span: number, only?: number): void {
    const end = Math.max(...this.worlds.map((world) => world.columns.goodput.length), 2);
    const start = span > 0 ? Math.max(0, end - Math.round(span / INTERVAL_S)) : 0;
    const time = Array.from({ length: end - start }, (_, place) => (start + place) * INTERVAL_S);
    for (const [place, plot] of this.plots.entries()) {
      if (only !== undefined && place !== only) continue;
      const rows = this.worlds.flatMap((world) =>
        columnsOf(PANELS[place]!, world).map(({ key }) => {
          const part = world.columns[key].slice(start, end);
          while (part.length < time.length) part.push(null);
          return part;
        }),
      );
      plot.setData([time, ...rows] as uPlot.AlignedData);
    }
  }

  /** Returns the charts with their titles. */
  get shown(): Chart[] {
    return this.plots.map((plot, place) => ({ title: PANELS[place]!.title, plot, marks: this.marks() }));
  }

  private width(): number {
    const columns = getComputedStyle(this.parent).gridTemplateColumns.split(" ").length;
    return Math.floor((this.parent.clientWidth - 12 * (columns - 1)) / columns);
  }

  private resize(): void {
    const width = this.width();
    for (const plot of this.plots) if (plot.width !== width) plot.setSize({ width, height: HEIGHT });
  }
}
