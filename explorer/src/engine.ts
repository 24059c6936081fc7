// The interface of the simulator: one request in JSON, one reply. Two transports implement it.

import type { TheorySource } from "./predictions";

export interface TraceEvent {
  time: number;
  flow: number;
  host: "sender" | "receiver";
  what: "send" | "receive" | "drop" | "duplicate" | "mark" | "corrupt" | "timeout" | "deliver";
  direction?: "forward" | "reverse";
  frame?: string;
  id?: number;
  size?: number;
  length?: number;
  sequence?: number;
  acknowledgement?: number;
  sack?: [number, number][];
  window?: number;
  retransmission?: boolean;
  subflow?: number;
  reason?: string;
  delivered?: number;
}

type Samples = (number | null)[];

export interface FlowSeries {
  flow: number;
  time: number[];
  cwnd_bytes: Samples;
  ssthresh_bytes: Samples;
  srtt_s: Samples;
  rtt_s?: Samples;
  in_flight_bytes: number[];
  goodput_bps: number[];
  retransmissions?: Samples;
  state: string[];
}

export interface QueueSeries {
  link: string;
  time: number[];
  packets: number[];
}

export interface Step {
  now_s: number;
  over: boolean;
  events: TraceEvent[];
  series: { flows: FlowSeries[]; queues: QueueSeries[]; details?: FlowDetails[] };
  crossings?: Crossings;
  decisions: Decision[];
  started: StartedFlow[];
}

/** A flow that started, its group (0 for the measured flows, then the traffic), and the number of its pair in the group. */
export interface StartedFlow {
  flow: number;
  group: number;
  pair: number;
}

/** The state of a sender after a change; counts are totals so far. */
export interface Decision {
  time: number;
  flow: number;
  subflow?: number;
  state: string;
  /** Phase of the congestion controller. */
  phase: string;
  /** Loss detection of TCP: "rack", "sack" or "newreno". */
  detection?: string;
  cwnd_bytes: number;
  ssthresh_bytes?: number;
  rto_s?: number;
  /** Packets acknowledged selectively, or duplicate ACKs. */
  sacked: number;
  timeouts: number;
  /** Tail loss probes, losses by the reordering timer, and spurious retransmissions. */
  probes: number;
  late: number;
  undone: number;
}

/** Samples of the parts of a flow. */
export interface FlowDetails {
  flow: number;
  time: number[];
  /** Bytes at the receiver that wait for earlier ones. */
  early_bytes: number[];
  /** Mean queueing delay of its data since the sample before; null without any. */
  queueing_s: Samples;
  subflows: SubflowSeries[];
}

export interface SubflowSeries {
  path: number;
  time: number[];
  cwnd_bytes: number[];
  srtt_s: number[];
  in_flight_bytes: number[];
  sent_bytes: number[];
}

/** The way of packets over the links; times in seconds. */
export interface Crossings {
  /** Packet id, link, and time of reaching the near end. */
  entered: [number, number, number][];
  /** Packet id and link of packets that wait again in another queue, before the transmissions. */
  requeued: [number, number][];
  /** Packet id, link, start and end of transmission, and arrival at the far end. */
  sent: [number, number, number, number, number][];
}

/** Nodes and links of a trial. Numbers of links and nodes are places in these lists. */
export interface NetworkShape {
  links: string[];
  /** Nodes at the near and the far end of each link. */
  ends: [number, number][];
  nodes: string[];
  /** The sender and the receiver of each pair of hosts. */
  pairs: [Host, Host][];
  /** The sending and the receiving host of each pair, of the measured flows and of each traffic. */
  groups: { name: string | null; pairs: [string, string][] }[];
  bottlenecks: number[];
}

export interface Host {
  node: number;
  name: string;
}

export type Spec = Record<string, unknown>;
export type Detail = "all" | "losses";
export type Stop = "drop" | "timeout" | "retransmission";

/** Returns whether an event is of a kind. */
export function isStop(stop: Stop, event: TraceEvent): boolean {
  return stop === "retransmission" ? event.what === "send" && event.retransmission === true : event.what === stop;
}

/** The versions of longfat and of the format of requests and replies. */
export interface EngineVersion {
  longfat: string;
  interface: number;
}

export type Request =
  | { do: "version" }
  | { do: "open"; spec: Spec; interval: number }
  | { do: "advance"; session: number; step: number; detail: Detail; links: boolean; until?: Stop }
  | { do: "link"; session: number; link: string; key: string; value: unknown }
  | { do: "protocol"; session: number; group: number; key: string; value: unknown }
  | { do: "capture"; session: number; side: Side }
  | { do: "lose"; session: number; id: number }
  | { do: "lose-next"; session: number; flow: number }
  | { do: "start-flow"; session: number; group: number; pair: number; size?: string }
  | { do: "stop-flow"; session: number; flow: number }
  | { do: "finish"; session: number };

export type Reply = { ok: unknown } | { error: string };

/** The end of each flow whose packets a capture contains. */
export type Side = "sender" | "receiver" | "both";

/** Carries requests to a simulator. */
export interface Transport {
  readonly name: string;
  /** What to do if page and simulator have different versions. */
  readonly update: string;
  send(request: Request): Promise<Reply>;
  /** Returns closed forms for a specification, where the page has theory. */
  theory?: TheorySource;
}

declare const INTERFACE: number;

/** Throws, with what to do, if the simulator has another version than this page. */
export async function checkVersion(transport: Transport): Promise<void> {
  const reply = await transport.send({ do: "version" });
  // The first simulators do not know this request.
  if ("error" in reply && !reply.error.includes("unknown variant")) throw new Error(reply.error);
  const version = "ok" in reply ? (reply.ok as EngineVersion) : undefined;
  if (version?.interface === INTERFACE) return;
  const found = version ? `that of longfat ${version.longfat}, with interface ${version.interface}` : "older";
  throw new Error(`This page needs a simulator with interface ${INTERFACE}, but the simulator is ${found}. ${transport.update}`);
}

/** A running trial. */
export class Session {
  private constructor(
    private readonly transport: Transport,
    private readonly number: number,
    readonly network: NetworkShape,
  ) {}

  static async open(transport: Transport, spec: Spec, interval: number): Promise<Session> {
    const opened = (await ask(transport, { do: "open", spec, interval })) as NetworkShape & { session: number };
    return new Session(transport, opened.session, opened);
  }

  async advance(step: number, detail: Detail, until?: Stop): Promise<Step> {
    const request: Request = { do: "advance", session: this.number, step, detail, links: detail === "all" };
    return (await ask(this.transport, until ? { ...request, until } : request)) as Step;
  }

  async changeLink(link: string, key: string, value: unknown): Promise<void> {
    await ask(this.transport, { do: "link", session: this.number, link, key, value });
  }

  /** Changes a key of the protocol of a group, for all of its flows. */
  async changeProtocol(group: number, key: string, value: unknown): Promise<void> {
    await ask(this.transport, { do: "protocol", session: this.number, group, key, value });
  }

  async capture(side: Side): Promise<Uint8Array<ArrayBuffer>> {
    const encoded = (await ask(this.transport, { do: "capture", session: this.number, side })) as string;
    return Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  }

  async lose(id: number): Promise<void> {
    await ask(this.transport, { do: "lose", session: this.number, id });
  }

  async loseNext(flow: number): Promise<void> {
    await ask(this.transport, { do: "lose-next", session: this.number, flow });
  }

  /** Starts a flow of a group, and returns its number. */
  async startFlow(group: number, pair: number, size: string): Promise<number> {
    const request = { do: "start-flow", session: this.number, group, pair } as const;
    return (await ask(this.transport, size ? { ...request, size } : request)) as number;
  }

  async stopFlow(flow: number): Promise<void> {
    await ask(this.transport, { do: "stop-flow", session: this.number, flow });
  }

  async close(): Promise<void> {
    await ask(this.transport, { do: "finish", session: this.number });
  }
}

async function ask(transport: Transport, request: Request): Promise<unknown> {
  const reply = await transport.send(request);
  if ("error" in reply) throw new Error(reply.error);
  return reply.ok;
}
