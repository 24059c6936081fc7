// Columns of the charts: one value for each sampling interval, for each flow and for the whole world.
import type { FlowDetails, FlowSeries, Step, TraceEvent } from "./engine";

/** Seconds from sample to sample. */
export const INTERVAL_S = 0.01;
/** Samples in each mean of goodput, since packets are delivered in bursts after a loss, and in each sum of marks. */
const SMOOTHED = 10;

export type Column = (number | null)[];

export interface Columns {
  cwnd: Column;
  ssthresh: Column;
  inFlight: Column;
  rtt: Column;
  queue: Column;
  /** In Mbit/s: what applications read. After a hole is filled, it contains data that arrived before. */
  goodput: Column;
  /** In Mbit/s: payload that arrives at receivers, also out of order and repeated; null without single packets. */
  received: Column;
}

/** Columns of a flow. */
export interface FlowColumns extends Columns {
  /** Marked packets of the last 100 ms. */
  marks: Column;
  /** Mean queueing delay in ms. */
  queueing: Column;
}

const empty = (): FlowColumns => ({ cwnd: [], ssthresh: [], inFlight: [], rtt: [], queue: [], goodput: [], received: [], marks: [], queueing: [] });

export interface SubflowColumns {
  path: number;
  cwnd: Column;
  rtt: Column;
  inFlight: Column;
}

/** What samples need of the flows: the first measured one, and the payload of the packets of each. */
export interface SampledFlows {
  readonly main: number;
  payloadOf(flow: number): number;
}

export class Samples {
  readonly flows: FlowColumns[] = [];
  readonly queues: Column[];
  /** Subflows of the first measured flow, and the packets that wait at its receiver. */
  readonly subflows: SubflowColumns[] = [];
  readonly early: Column = [];
  /** Number of marked packets so far. */
  marked = 0;
  private readonly goodput: Column = [];
  private readonly raw: Column = [];
  private readonly received: Column = [];
  private readonly rawReceived: Column = [];
  private readonly rawOfFlows: Column[] = [];
  private readonly marksOfFlows: Column[] = [];

  constructor(
    private readonly known: SampledFlows,
    bottlenecks: number,
  ) {
    this.queues = Array.from({ length: bottlenecks }, () => []);
  }

  /** Windows and RTT of the first measured flow, the first queue, and the goodput of all flows. */
  get columns(): Columns {
    return { ...(this.flows[this.known.main] ?? empty()), queue: this.queues[0] ?? [], goodput: this.goodput, received: this.received };
  }

  /** Adds the events and samples of a step; `all` if it has the events of all packets. */
  add(events: readonly TraceEvent[], series: Step["series"], all: boolean): void {
    const before = this.raw.length;
    if (all) for (const event of events) this.addReceived(event);
    for (const { what, flow, time } of events) if (what === "mark") this.addMark(flow, time);
    series.queues.forEach((queue, place) => {
      queue.time.forEach((time, sample) => put(this.queues[place]!, time, queue.packets[sample] ?? null));
    });
    for (const flow of series.flows) this.addFlow(flow);
    for (const details of series.details ?? []) this.addDetails(details);
    if (all) for (let place = this.rawReceived.length; place < this.raw.length; place += 1) this.rawReceived[place] = 0;
    // Without single packets, arrivals are unknown, also in the interval that continues.
    else for (let place = before; place <= this.raw.length; place += 1) this.rawReceived[place] = null;
    smooth(this.raw, this.goodput);
    // The interval after the last sample is incomplete.
    smooth(this.rawReceived, this.received, this.raw.length);
  }

  private addReceived({ what, length, direction, time }: TraceEvent): void {
    if (what !== "receive" || !length || direction !== "forward") return;
    const index = Math.ceil(time / INTERVAL_S - 1e-9);
    while (this.rawReceived.length <= index) this.rawReceived.push(0);
    const known = this.rawReceived[index]!;
    if (known !== null) this.rawReceived[index] = known + (length * 8) / INTERVAL_S / 1e6;
  }

  private addMark(flow: number, time: number): void {
    this.marked += 1;
    this.prepare(flow);
    // A sample is about the interval before it.
    const index = Math.ceil(time / INTERVAL_S - 1e-9);
    const marks = this.marksOfFlows[flow]!;
    marks[index] = (marks[index] ?? 0) + 1;
  }

  private prepare(flow: number): void {
    while (this.flows.length <= flow) {
      this.flows.push(empty());
      this.rawOfFlows.push([]);
      this.marksOfFlows.push([]);
    }
  }

  private addFlow(flow: FlowSeries): void {
    this.prepare(flow.flow);
    const columns = this.flows[flow.flow]!;
    const raw = this.rawOfFlows[flow.flow]!;
    const marks = this.marksOfFlows[flow.flow]!;
    const payload = this.known.payloadOf(flow.flow);
    const packets = (bytes: number | null | undefined): number | null => (typeof bytes === "number" ? bytes / payload : null);
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
      const recent = marks.slice(Math.max(0, index + 1 - SMOOTHED), index + 1);
      put(columns.marks, time, recent.reduce<number>((sum, count) => sum + (count ?? 0), 0));
    });
    smooth(raw, columns.goodput);
  }

  private addDetails({ flow, time: times, early_bytes, queueing_s, subflows }: FlowDetails): void {
    const payload = this.known.payloadOf(flow);
    times.forEach((time, place) => {
      const wait = queueing_s[place] ?? null;
      this.prepare(flow);
      put(this.flows[flow]!.queueing, time, wait === null ? null : wait * 1e3);
      if (flow === this.known.main) put(this.early, time, early_bytes[place]! / payload);
    });
    if (flow !== this.known.main) return;
    subflows.forEach((subflow, number) => {
      const columns = (this.subflows[number] ??= { path: subflow.path, cwnd: [], rtt: [], inFlight: [] });
      subflow.time.forEach((time, place) => {
        put(columns.cwnd, time, subflow.cwnd_bytes[place]! / payload);
        put(columns.rtt, time, subflow.srtt_s[place]! > 0 ? subflow.srtt_s[place]! * 1e3 : null);
        put(columns.inFlight, time, subflow.in_flight_bytes[place]! / payload);
      });
    });
  }
}

function smooth(raw: Column, target: Column, end = raw.length): void {
  for (let index = target.length; index < end; index += 1) {
    target[index] = mean(raw.slice(Math.max(0, index + 1 - SMOOTHED), index + 1).filter((value) => value !== null));
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
