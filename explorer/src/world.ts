// The state of one world: what the page draws, built from the events and samples of its session.
import { decisionSentences, retransmissionRule } from "./decisions";
import type { Decision, Detail, NetworkShape, Step, TraceEvent } from "./engine";
import { INTERVAL_S, mean, Samples, type Column, type Columns, type FlowColumns, type SubflowColumns } from "./columns";
import { FlowGroups, plannedFlows } from "./flow-groups";
import type { Intervention } from "./interventions";
import { LIVE, valueText } from "./live-settings";
import { nameOf, sentences, type Sentence } from "./narrative";
import { Packets } from "./packets";
import { PROTOCOLS } from "./protocols";
import { lossKind, type LossKind } from "./losses";
import { labelWith, type Rival } from "./rivals";
import type { Scene } from "./scene";

const MOST_EVENTS = 20_000;
const MOST_SENTENCES = 300;
const MOST_SEGMENTS = 4_000;

export interface Segment {
  length: number;
  sent: number;
  retransmissions: number;
  lost: boolean;
  received: boolean;
}

export class World {
  private readonly samples: Samples;
  readonly packets = new Packets();
  /** Flows that an intervention stopped. */
  readonly stopped = new Set<number>();
  readonly events: TraceEvent[] = [];
  readonly sentences: Sentence[] = [];
  /** Number of sentences so far, with those that are no longer kept. */
  said = 0;
  /** Segments of the first measured flow by sequence number. */
  readonly segments = new Map<number, Segment>();
  now = 0;
  over = false;
  /** Time at which a receiver last read data, if packets are simulated in detail. */
  lastDelivery: number | undefined;
  /** Cumulative acknowledgement of the first measured flow, at the sender and at the receiver. */
  acknowledged = 0;
  delivered = 0;
  retransmissions = 0;
  drops = 0;
  /** Dropped packets by their kind. */
  readonly lost: Record<LossKind, number> = { random: 0, queue: 0, ack: 0, other: 0 };
  timeouts = 0;
  /** The rule behind each retransmission. */
  readonly rules = new WeakMap<TraceEvent, string>();
  /** The last state of each sender. */
  private readonly senders = new Map<string, Decision>();
  private detail: Detail = "all";

  /** The flows and their protocols. */
  readonly groups: FlowGroups;
  private readonly rivals: readonly Rival[];

  constructor(name: string, scene: Scene, readonly network: NetworkShape) {
    this.rivals = scene.rivals;
    this.groups = new FlowGroups(name, scene.rivals, network, plannedFlows(scene));
    this.samples = new Samples(this.groups, network.bottlenecks.length);
  }

  /** The protocol of the measured flows. */
  get name(): string {
    return this.groups.measured;
  }

  /** The protocols of all flows in titles. */
  get label(): string {
    return labelWith(this.name, this.rivals);
  }

  /** Number of started flows. */
  get started(): number {
    return this.groups.count;
  }

  /** Columns of the first measured flow, the first bottleneck and the sum of all goodputs. */
  get columns(): Columns {
    return this.samples.columns;
  }

  /** Columns of each flow. */
  get flows(): readonly FlowColumns[] {
    return this.samples.flows;
  }

  /** Number of marked packets. */
  get marked(): number {
    return this.samples.marked;
  }

  /** Columns of each subflow of the first measured flow. */
  get subflows(): readonly SubflowColumns[] {
    return this.samples.subflows;
  }

  /** Packets at the receiver of the first measured flow that wait for earlier ones. */
  get early(): Column {
    return this.samples.early;
  }

  /** The queue of each bottleneck. */
  get queues(): readonly Column[] {
    return this.samples.queues;
  }

  /** Returns the latest length of a link's queue, or 0 if it is no bottleneck. */
  queueOf(link: number): number {
    const place = this.network.bottlenecks.indexOf(link);
    return last(this.samples.queues[place] ?? []) ?? 0;
  }

  apply(step: Step, detail: Detail): void {
    if (detail !== this.detail) {
      this.packets.clear();
      this.segments.clear();
      this.detail = detail;
    }
    this.now = step.now_s;
    this.over = step.over;
    this.groups.add(step.started);
    this.samples.add(step.events, step.series, detail === "all");
    if (detail === "all") this.packets.add(step.events, step.crossings);
    let decided = 0;
    const decideUntil = (time: number): void => {
      for (; decided < step.decisions.length && step.decisions[decided]!.time <= time; decided += 1) this.decide(step.decisions[decided]!);
    };
    for (const event of step.events) {
      decideUntil(event.time);
      this.keep(event);
      for (const sentence of sentences(this, event)) this.say(sentence);
    }
    decideUntil(Infinity);
    this.prune();
  }

  private say(sentence: Sentence): void {
    this.said += 1;
    const before = last(this.sentences);
    const together = sentence.kind === "retransmission" && before?.kind === sentence.kind && before.time === sentence.time;
    // Marks of one flow without another event between them.
    const marks = sentence.kind === "mark" && before?.kind === "mark" && before.event?.flow === sentence.event?.flow;
    if (before && (together || marks || (sentence.kind === "state" && before.text === sentence.text))) {
      before.more = (before.more ?? 0) + 1;
      return;
    }
    this.sentences.push(sentence);
    if (this.sentences.length > MOST_SENTENCES) this.sentences.shift();
  }

  /** Notes an intervention; `started` is the number of the flow that it started. */
  intervene(intervention: Intervention, place: number, started?: number): void {
    if (intervention.do === "lose" && intervention.world === place) {
      const packet = this.packets.inside.get(intervention.id);
      if (packet) packet.condemned = true;
      this.note(`You drop ${packet ? nameOf(packet.event) : "a packet"}: it is lost at the end of its link.`, packet?.event);
    } else if (intervention.do === "lose-next") {
      this.note(`You drop the next data packet of flow ${intervention.flow + 1}.`);
    } else if (intervention.do === "start-flow") {
      const { group = 0, pair, size } = intervention;
      const flow = started ?? this.started;
      this.groups.add([{ flow, group, pair }]);
      const protocol = this.groups.several ? ` of ${PROTOCOLS[this.groups.protocolOf(flow)]!.label}` : "";
      this.note(`You start flow ${flow + 1}${protocol}${size ? ` of ${size}` : ""}.`);
    } else if (intervention.do === "stop-flow") {
      this.stopped.add(intervention.flow);
      this.note(`You stop flow ${intervention.flow + 1}: it sends the data in its send buffer, then it closes.`);
    } else if (intervention.do === "change") {
      this.note(`You change the ${LIVE[intervention.key]} to ${valueText(intervention.value)}.`);
    } else if (intervention.do === "change-protocol" && intervention.world === place) {
      this.note(`You replace ${PROTOCOLS[this.name]!.label} by ${PROTOCOLS[intervention.name]!.label}.`);
      this.groups.measured = intervention.name;
    }
  }

  /** Adds a sentence without an event of the engine. */
  note(text: string, event?: TraceEvent): void {
    this.say({ time: this.now, text, kind: "intervention", ...(event ? { event } : {}) });
  }

  private keep(event: TraceEvent): void {
    this.events.push(event);
    if (event.what === "drop") {
      this.drops += 1;
      this.lost[lossKind(event)] += 1;
    }
    if (event.what === "timeout") this.timeouts += 1;
    if (event.what === "deliver") {
      this.lastDelivery = event.time;
      if (event.flow === this.groups.main) this.delivered = event.delivered ?? this.delivered;
    }
    const { id, direction } = event;
    if (event.what === "send" && event.retransmission) {
      this.retransmissions += 1;
      this.rules.set(event, retransmissionRule(this.senderOf(event), event.time));
    }
    if (id === undefined || direction === undefined || this.detail !== "all") return;
    this.packets.handle(event);
    this.follow(event);
  }

  /** Follows the byte stream of the first measured flow. */
  private follow(event: TraceEvent): void {
    if (event.flow !== this.groups.main || event.sequence === undefined || event.subflow !== undefined) return;
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
    if (this.segments.size <= MOST_SEGMENTS) return;
    for (const sequence of this.segments.keys()) {
      if (sequence >= this.acknowledged && this.segments.size < 2 * MOST_SEGMENTS) continue;
      this.segments.delete(sequence);
      if (this.segments.size <= MOST_SEGMENTS / 2) break;
    }
  }

  /** Handles a change of a sender's state. */
  private decide(decision: Decision): void {
    const key = decision.subflow === undefined ? `${decision.flow}` : `${decision.flow} ${decision.subflow}`;
    const { groups } = this;
    const name = groups.prefix(decision.flow, decision.subflow);
    for (const text of decisionSentences(this.senders.get(key), decision, groups.payloadOf(decision.flow), groups.protocolOf(decision.flow))) {
      this.say({ time: decision.time, text: `${name}${text}`, kind: "state" });
    }
    this.senders.set(key, decision);
  }

  /** Returns the last state of a flow's sender, or of a subflow's. */
  senderOf({ flow, subflow }: TraceEvent): Decision | undefined {
    return this.senders.get(subflow === undefined ? `${flow}` : `${flow} ${subflow}`);
  }

  /** Returns the mean goodput in Mbit/s over the last `seconds`, from the first delivery on. */
  recentGoodput(seconds: number, { goodput }: Columns = this.columns): number | null {
    const first = goodput.findIndex((value) => (value ?? 0) > 0);
    const start = Math.max(first, goodput.length - Math.max(1, Math.round(seconds / INTERVAL_S)), 0);
    return mean(goodput.slice(start).filter((value) => value !== null && value !== undefined));
  }
}

export const last = <T>(values: readonly T[]): T | undefined => values[values.length - 1];
