// Rates per interval.
import type { Range } from "./view";
import { firstAtOrAfter } from "./search";

/** Intervals in a chart. */
const INTERVALS = 250;

/** Returns the interval in s for a period: 1, 2 or 5 times a power of ten. */
export function intervalOf([from, to]: Range): number {
  const least = (to - from) / INTERVALS;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((interval) => interval >= least * (1 - 1e-9))!;
}

export interface Rates {
  /** Starts of the intervals in s. */
  time: number[];
  /** Mbit/s of each column. */
  columns: number[][];
}

/** Returns the mean rate of each interval that the period contains, and the columns' sums per interval in Mbit/s. */
export function ratesOf([from, to]: Range, interval: number, columns: readonly { time: readonly number[]; bytes: readonly number[] }[]): Rates {
  const first = Math.floor(from / interval);
  const number = Math.max(1, Math.ceil(to / interval - 1e-9) - first);
  const time = Array.from({ length: number }, (_, place) => (first + place) * interval);
  const rates = columns.map((column) => {
    const sums = new Array<number>(number).fill(0);
    for (let place = firstAtOrAfter(column.time, first * interval); place < column.time.length; place++) {
      if (column.time[place]! > to) break;
      const bin = Math.min(number - 1, Math.floor(column.time[place]! / interval) - first);
      sums[bin]! += column.bytes[place]!;
    }
    return sums.map((bytes) => (bytes * 8) / interval / 1e6);
  });
  return { time, columns: rates };
}
