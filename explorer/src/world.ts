// The state of one world: what the page draws, built from the events and samples of its session.
import type { Detail, Step, TraceEvent } from "./engine";
import { sentences, type Sentence } from "./narrative";

/** Seconds from sample to sample. */
export const INTERVAL_S = 0.01;
/** Samples of goodput in each mean. */
const SMOOTHED = 10;
const STATES: Readonly<Record<string, string>> = {
  open: "Normal operation",
  disorder: "ACKs show disorder",
  recovery: "Fast recovery",
  loss: "Loss recovery after a timeout",
};
const MOST_EVENTS = 20_000;
const MOST_SENTENCES = 300;
const MOST_SEGMENTS = 4_000;

/** A packet on a link or in its queue. */
export interface Packet {
  event: TraceEvent;
  /** Start of its transmission, and its arrival without jitter. */
  start: number;
  arrival: number;
  dropped?: { time: number; reason: string };
  received?: number;
}

/** The transmission times of a drop-tail link. */
class Link {
  private free = 0;
  private previous = 0;

  constructor(
    public rate: number,
    public delay: number,
  ) {}

  enter(event: TraceEvent): Packet {
    const start = Math.max(event.time, this.free);
    this.previous = this.free;
    this.free = start + ((event.size ?? 0) * 8) / this.rate;
    return { event, start, arrival: this.free + this.delay };
  }

  /** The packet that entered last is dropped before the queue. */
  withdraw(): void {
    this.free = this.previous;
  }
}

export interface Segment {
  length: number;
  sent: number;
  retransmissions: number;
  lost: boolean;
  received: boolean;
}

/** Columns of the charts, one value for each sampling interval. */
export interface Columns {
  cwnd: (number | null)[];
  ssthresh: (number | null)[];
  inFlight: (number | null)[];
  rtt: (number | null)[];
  queue: (number | null)[];
  goodput: (number | null)[];
}

export class World {
  readonly columns: Columns = { cwnd: [], ssthresh: [], inFlight: [], rtt: [], queue: [], goodput: [] };
  readonly links: Record<"forward" | "reverse", Link>;
  /** Packets of the links by id, and those that left recently. */
  readonly packets = new Map<number, Packet>();
  readonly finished: Packet[] = [];
  readonly events: TraceEvent[] = [];
  readonly sentences: Sentence[] = [];
  /** Segments of flow 0 by sequence number. */
  readonly segments = new Map<number, Segment>();
  now = 0;
  over = false;
  /** Cumulative acknowledgement of flow 0, at the sender and at the receiver. */
  acknowledged = 0;
  delivered = 0;
  retransmissions = 0;
  drops = 0;
  timeouts = 0;
  goodputOfFlows: number[] = [];
  state = "open";
  /** Duplicate ACKs of flow 0 in sequence. */
  duplicates = 0;
  lastAcknowledgement = -1;
  private detail: Detail = "all";
  private readonly rawGoodput: (number | null)[] = [];

  constructor(
    public name: string,
    readonly payload: number,
    rate: number,
    delay: number,
  ) {
    this.links = { forward: new Link(rate, delay), reverse: new Link(rate, delay) };
  }

  change(rate: number, delay: number): void {
    for (const link of Object.values(this.links)) Object.assign(link, { rate, delay });
  }

  apply(step: Step, detail: Detail): void {
    if (detail !== this.detail) {
      this.packets.clear();
      this.segments.clear();
      this.detail = detail;
    }
    this.now = step.now_s;
    this.over = step.over;
    this.sample(step);
    for (const event of step.events) {
      this.keep(event);
      for (const sentence of sentences(this, event)) this.say(sentence);
    }
    this.prune();
  }

  private say(sentence: Sentence): void {
    const before = last(this.sentences);
    if (before && sentence.kind === "retransmission" && before.kind === sentence.kind && before.time === sentence.time) {
      before.more = (before.more ?? 0) + 1;
      return;
    }
    this.sentences.push(sentence);
    if (this.sentences.length > MOST_SENTENCES) this.sentences.shift();
  }

  private keep(event: TraceEvent): void {
    this.events.push(event);
    if (event.what === "drop") this.drops += 1;
    if (event.what === "timeout") this.timeouts += 1;
    if (event.what === "deliver" && event.flow === 0) this.delivered = event.delivered ?? this.delivered;
    const { id, direction } = event;
    if (event.what === "send" && event.retransmission) this.retransmissions += 1;
    if (id === undefined || direction === undefined || this.detail !== "all") return;
    if (event.what === "send") this.packets.set(id, this.links[direction].enter(event));
    else if (event.what === "drop") this.drop(event, id, direction);
    else if (event.what === "receive") this.receive(event, id);
    this.follow(event);
  }

  private drop(event: TraceEvent, id: number, direction: "forward" | "reverse"): void {
    const packet = this.packets.get(id);
    if (!packet) return;
    if (packet.event.time === event.time) this.links[direction].withdraw();
    packet.dropped = { time: event.time, reason: event.reason ?? "" };
    this.packets.delete(id);
    this.finished.push(packet);
  }

  private receive(event: TraceEvent, id: number): void {
    const packet = this.packets.get(id);
    if (!packet) return;
    packet.received = event.time;
    this.packets.delete(id);
    this.finished.push(packet);
  }

  /** Follows the byte stream of flow 0. */
  private follow(event: TraceEvent): void {
    if (event.flow !== 0 || event.sequence === undefined) return;
    if (event.direction === "forward" && (event.length ?? 0) > 0) {
      const known = this.segments.get(event.sequence);
      if (event.what === "send") {
        const resent = known ? known.retransmissions + 1 : 0;
        const segment = { length: event.length!, sent: event.time, retransmissions: resent, lost: false };
        this.segments.set(event.sequence, { ...segment, received: known?.received ?? false });
      } else if (known && event.what === "drop") known.lost = true;
      else if (known && event.what === "receive") known.received = true;
    } else if (event.direction === "reverse" && event.what === "receive" && event.acknowledgement !== undefined) {
      this.acknowledged = Math.max(this.acknowledged, event.acknowledgement);
    }
  }

  private prune(): void {
    if (this.events.length > 2 * MOST_EVENTS) this.events.splice(0, this.events.length - MOST_EVENTS);
    if (this.finished.length > MOST_EVENTS) this.finished.splice(0, this.finished.length - MOST_EVENTS / 2);
    if (this.segments.size <= MOST_SEGMENTS) return;
    for (const sequence of this.segments.keys()) {
      if (sequence >= this.acknowledged && this.segments.size < 2 * MOST_SEGMENTS) continue;
      this.segments.delete(sequence);
      if (this.segments.size <= MOST_SEGMENTS / 2) break;
    }
  }

  private sample(step: Step): void {
    const { columns } = this;
    const packets = (bytes: number | null | undefined): number | null =>
      bytes === null || bytes === undefined ? null : bytes / this.payload;
    for (const queue of step.series.queues) {
      if (queue.link !== "forward") continue;
      queue.time.forEach((time, place) => put(columns.queue, time, queue.packets[place] ?? null));
    }
    for (const flow of step.series.flows) {
      flow.time.forEach((time, place) => {
        const index = indexOf(time);
        const goodput = (this.rawGoodput[index] ?? 0) + flow.goodput_bps[place]! / 1e6;
        put(this.rawGoodput, time, goodput);
        if (flow.flow !== 0) return;
        put(columns.cwnd, time, packets(flow.cwnd_bytes[place]));
        put(columns.ssthresh, time, packets(flow.ssthresh_bytes[place]));
        put(columns.inFlight, time, packets(flow.in_flight_bytes[place]));
        const rtt = flow.rtt_s?.[place] ?? flow.srtt_s[place] ?? null;
        put(columns.rtt, time, rtt === null ? null : rtt * 1e3);
        this.changeState(time, flow.state[place]!);
      });
      const smoothed = this.goodputOfFlows[flow.flow] ?? 0;
      const latest = mean(flow.goodput_bps);
      if (latest !== null) this.goodputOfFlows[flow.flow] = smoothed + (latest - smoothed) * Math.min(1, flow.time.length / 100);
    }
    this.smooth();
  }

  private changeState(time: number, state: string): void {
    if (state === this.state) return;
    this.state = state;
    const [cwnd, ssthresh] = [last(this.columns.cwnd), last(this.columns.ssthresh)];
    const threshold = typeof ssthresh === "number" ? `, ssthresh = ${ssthresh.toFixed(0)}` : "";
    const values = `cwnd = ${cwnd?.toFixed(0) ?? "–"}${threshold} (packets)`;
    const text = `${STATES[state] ?? `State ${state}`}: ${values}.`;
    this.say({ time, text, kind: "state" });
  }

  /** Goodput of the last samples, since packets are delivered in bursts after a loss. */
  private smooth(): void {
    const raw = this.rawGoodput;
    for (let index = this.columns.goodput.length; index < raw.length; index += 1) {
      this.columns.goodput[index] = mean(raw.slice(Math.max(0, index + 1 - SMOOTHED), index + 1));
    }
  }

  /** Returns the mean of a column over the last `seconds`. */
  recent(column: keyof Columns, seconds: number): number | null {
    const values = this.columns[column].slice(-Math.max(1, Math.round(seconds / INTERVAL_S)));
    return mean(values.filter((value) => value !== null && value !== undefined));
  }
}

const indexOf = (time: number): number => Math.round(time / INTERVAL_S);

function put(column: (number | null)[], time: number, value: number | null): void {
  const index = indexOf(time);
  while (column.length < index) column.push(null);
  column[index] = value;
}

function mean(values: readonly (number | null)[]): number | null {
  if (values.length === 0) return null;
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / values.length;
}

export const last = <T>(values: readonly T[]): T | undefined => values[values.length - 1];
