// The look that all charts share.
import type uPlot from "uplot";
import { theme } from "./palette";

/** Room for the times below a chart. */
export const TIME_AXIS = 32;

const BORDERS: Readonly<Record<number, string>> = { 0: "solid", 9: "dashed", 6: "dashed", 2: "dotted" };

/** Returns the colours of an axis in the page's theme. */
export function axisStyle(): uPlot.Axis {
  const colours = theme();
  return { stroke: colours.text, grid: { stroke: colours.line, width: 0.5 }, ticks: { stroke: colours.line } };
}

/** Legends show the dashes of lines. */
export const legendMarkers = (): uPlot.Legend.Markers => ({
  width: 2,
  dash: (plot, place) => BORDERS[plot.series[place]!.dash?.[0] ?? 0]!,
});
