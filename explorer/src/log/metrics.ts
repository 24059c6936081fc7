// Windows and RTTs of a sender. Logs report changed values only, so each row repeats the others.
import { numberOf, type Fields } from "./fields";

const NAMES = {
  congestionWindow: ["congestion_window", "cwnd", "current_cwnd"],
  bytesInFlight: ["bytes_in_flight"],
  ssthresh: ["ssthresh"],
  latestRtt: ["latest_rtt"],
  smoothedRtt: ["smoothed_rtt"],
  minRtt: ["min_rtt"],
} as const;
export type Metric = keyof typeof NAMES;
const METRICS = Object.keys(NAMES) as Metric[];
const RTTS: ReadonlySet<Metric> = new Set(["latestRtt", "smoothedRtt", "minRtt"]);
/** Larger thresholds stand for none. */
const NO_THRESHOLD = 2 ** 40;

export class Metrics {
  readonly time: number[] = [];
  /** Bytes, and RTTs in ms. */
  readonly columns = Object.fromEntries(METRICS.map((metric) => [metric, [] as (number | null)[]])) as Record<Metric, (number | null)[]>;
  /** Each latest RTT that the log reports, in ms. */
  readonly rtts: number[] = [];

  /** @param unit Milliseconds of the log's unit of time. */
  add(time: number, data: Fields, unit: number): void {
    this.time.push(time);
    for (const metric of METRICS) {
      const column = this.columns[metric];
      const value = NAMES[metric].map((name) => numberOf(data[name])).find((found) => found !== undefined);
      if (value === undefined) column.push(column.at(-1) ?? null);
      else if (RTTS.has(metric)) column.push(value > 0 ? value * unit : null);
      else column.push(metric === "ssthresh" && value > NO_THRESHOLD ? null : value);
      if (metric === "latestRtt" && value !== undefined && value > 0) this.rtts.push(value * unit);
    }
  }

  has(metric: Metric): boolean {
    return this.columns[metric].some((value) => value !== null);
  }
}
