// Columns of the charts: one value for each sampling interval, for each flow and for the whole world.
import type { FlowDetails, FlowSeries, Step } from "./engine";

/** Seconds from sample to sample. */
export const INTERVAL_S = 0.01;
/** Samples of goodput in each mean, since packets are delivered in bursts after a loss. */
const SMOOTHED = 10;

export type Column = (number | null)[];

export interface Columns {
  cwnd: Column;
  ssthresh: Column;
  inFlight: Column;
  rtt: Column;
  queue: Column;
  goodput: Column;
}

const empty = (): Columns => ({ cwnd: [], ssthresh: [], inFlight: [], rtt: [], queue: [], goodput: [] });

export interface SubflowColumns {
  path: number;
  cwnd: Column;
  rtt: Column;
  inFlight: Column;
}

export class Samples {
  /** Windows and RTT of the first flow, the first queue, and the goodput of all flows. */
  readonly columns = empty();
  readonly flows: Columns[] = [];
  readonly queues: Column[];
  /** Subflows of the first flow, and the packets that wait at its receiver. */
  readonly subflows: SubflowColumns[] = [];
  readonly early: Column = [];
  private readonly raw: Column = [];
  private readonly rawOfFlows: Column[] = [];

  constructor(
    private readonly payload: number,
    bottlenecks: number,
  ) {
    this.queues = Array.from({ length: bottlenecks }, () => []);
  }

  /** Adds the samples of a step. */
  add(series: Step["series"]): void {
    series.queues.forEach((queue, place) => {
      queue.time.forEach((time, sample) => put(this.queues[place]!, time, queue.packets[sample] ?? null));
    });
    this.columns.queue = this.queues[0] ?? [];
    for (const flow of series.flows) this.addFlow(flow);
    for (const details of series.details ?? []) if (details.flow === 0) this.addDetails(details);
    smooth(this.raw, this.columns.goodput);
  }

  private addFlow(flow: FlowSeries): void {
    while (this.flows.length <= flow.flow) {
      this.flows.push(this.flows.length === 0 ? { ...this.columns, goodput: [] } : empty());
      this.rawOfFlows.push([]);
    }
    const columns = this.flows[flow.flow]!;
    const raw = this.rawOfFlows[flow.flow]!;
    const packets = (bytes: number | null | undefined): number | null => (typeof bytes === "number" ? bytes / this.payload : null);
    flow.time.forEach((time, place) => {
      const index = indexOf(time);
      const goodput = flow.goodput_bps[place]! / 1e6;
      put(raw, time, goodput);
      put(this.raw, time, (this.raw[index] ?? 0) + goodput);
      put(columns.cwnd, time, packets(flow.cwnd_bytes[place]));
      put(columns.ssthresh, time, packets(flow.ssthresh_bytes[place]));
      put(columns.inFlight, time, packets(flow.in_flight_bytes[place]));
      const rtt = flow.rtt_s?.[place] ?? flow.srtt_s[place] ?? null;
      put(columns.rtt, time, rtt === null ? null : rtt * 1e3);
    });
    smooth(raw, columns.goodput);
  }

  private addDetails({ time: times, early_bytes, subflows }: FlowDetails): void {
    times.forEach((time, place) => put(this.early, time, early_bytes[place]! / this.payload));
    subflows.forEach((subflow, number) => {
      const columns = (this.subflows[number] ??= { path: subflow.path, cwnd: [], rtt: [], inFlight: [] });
      subflow.time.forEach((time, place) => {
        put(columns.cwnd, time, subflow.cwnd_bytes[place]! / this.payload);
        put(columns.rtt, time, subflow.srtt_s[place]! > 0 ? subflow.srtt_s[place]! * 1e3 : null);
        put(columns.inFlight, time, subflow.in_flight_bytes[place]! / this.payload);
      });
    });
  }
}

function smooth(raw: Column, target: Column): void {
  for (let index = target.length; index < raw.length; index += 1) {
    const known = raw.slice(Math.max(0, index + 1 - SMOOTHED), index + 1).filter((value) => value !== null);
    target[index] = mean(known);
  }
}

const indexOf = (time: number): number => Math.round(time / INTERVAL_S);

export function put(column: Column, time: number, value: number | null): void {
  const index = indexOf(time);
  while (column.length < index) column.push(null);
  column[index] = value;
}

export function mean(values: readonly (number | null)[]): number | null {
  if (values.length === 0) return null;
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / values.length;
}
