// The packets on the links: where each one is, from the records of the engine.
import type { Crossings, TraceEvent } from "./engine";

const MOST_FINISHED = 20_000;

/** One link of a packet's way. */
export interface Hop {
  link: number;
  entered: number;
  /** Start and end of transmission, and arrival, once the engine has decided them. */
  start?: number;
  end?: number;
  arrival?: number;
}

export interface Packet {
  /** Its transmission by the host. */
  event: TraceEvent;
  hops: Hop[];
  /** Whether its loss is requested. */
  condemned?: boolean;
  dropped?: { time: number; reason: string };
  received?: number;
}

/** Packets by id, and those that left recently. */
export class Packets {
  readonly inside = new Map<number, Packet>();
  readonly finished: Packet[] = [];
  /** Links on the way of received packets, by flow and direction. */
  private readonly lengths = new Map<string, number>();

  /** Adds the packets that hosts sent and their ways, before other events of the step. */
  add(events: readonly TraceEvent[], crossings: Crossings | undefined): void {
    for (const event of events) {
      if (event.what === "send" && event.id !== undefined) this.inside.set(event.id, { event, hops: [] });
    }
    for (const [id, link, entered] of crossings?.entered ?? []) this.inside.get(id)?.hops.push({ link, entered });
    for (const [id, link] of crossings?.requeued ?? []) {
      const hop = this.inside.get(id)?.hops.find((one) => one.link === link);
      if (hop) Object.assign(hop, { start: undefined, end: undefined, arrival: undefined });
    }
    for (const [id, link, start, end, arrival] of crossings?.sent ?? []) {
      const hop = this.inside.get(id)?.hops.find((one) => one.link === link && one.start === undefined);
      if (hop) Object.assign(hop, { start, end, arrival });
    }
  }

  /** Handles a later event of a packet. */
  handle(event: TraceEvent): void {
    const packet = event.id === undefined ? undefined : this.inside.get(event.id);
    if (!packet) return;
    if (event.what === "drop") {
      packet.dropped = { time: event.time, reason: event.reason ?? "" };
    } else if (event.what === "receive") {
      packet.received = event.time;
      this.lengths.set(wayKey(event), packet.hops.length);
    } else return;
    this.inside.delete(event.id!);
    this.finished.push(packet);
    if (this.finished.length > MOST_FINISHED) this.finished.splice(0, MOST_FINISHED / 2);
  }

  /** Returns a packet that is inside the network or left recently. */
  find(id: number): Packet | undefined {
    return this.inside.get(id) ?? this.finished.find(({ event }) => event.id === id);
  }

  /** Returns the number of links on the way of a packet, once one like it has arrived. */
  hops(event: TraceEvent): number {
    return this.lengths.get(wayKey(event)) ?? 1;
  }

  clear(): void {
    this.inside.clear();
  }
}

const wayKey = (event: TraceEvent): string => `${event.flow} ${event.direction} ${event.subflow ?? 0}`;

/** Returns the hop of a packet at a time. */
export function hopAt(packet: Packet, now: number): Hop | undefined {
  for (let place = packet.hops.length - 1; place >= 0; place -= 1) {
    if (packet.hops[place]!.entered <= now) return packet.hops[place];
  }
  return undefined;
}

/** Returns the share of a hop's time between the start of transmission and arrival; 0 in the queue. */
export function progress(hop: Hop, now: number): number {
  if (hop.start === undefined || hop.arrival === undefined || now <= hop.start) return 0;
  return Math.min(1, (now - hop.start) / Math.max(1e-9, hop.arrival - hop.start));
}

/** Returns whether a packet waits for transmission. */
export const waits = (hop: Hop, now: number): boolean => hop.start === undefined || hop.start > now;
