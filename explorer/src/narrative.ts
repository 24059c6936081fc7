// A sentence for each important event, with the rule and its source.
import type { TraceEvent } from "./engine";
import type { World } from "./world";

export interface Sentence {
  time: number;
  text: string;
  kind: "loss" | "timeout" | "retransmission" | "state" | "mark" | "intervention";
  event?: TraceEvent;
  /** Further retransmissions at the same time. */
  more?: number;
}

const DROPS: Readonly<Record<string, string>> = {
  queue: "The queue drops a packet",
  loss: "Random loss",
  mtu: "The packet exceeds the MTU",
  request: "Your drop",
};

/** Returns a frame's name and number. */
export function nameOf(event: TraceEvent): string {
  const number = event.frame === "ack" ? event.acknowledgement : event.sequence;
  return `${event.frame ?? "packet"} ${number ?? ""}`.trim();
}

/** Returns the sentences about an event. Counts duplicate ACKs in the world. */
export function sentences(world: World, event: TraceEvent): Sentence[] {
  const { time } = event;
  const flow = event.flow > 0 ? `Flow ${event.flow + 1}: ` : "";
  if (event.what === "drop") {
    const cause = DROPS[event.reason ?? ""] ?? `Dropped (${event.reason ?? "unknown reason"})`;
    return [{ time, kind: "loss", event, text: `${flow}${cause}: ${nameOf(event)} is lost.` }];
  }
  if (event.what === "mark") {
    return [{ time, kind: "mark", event, text: `${flow}The queue marks ${nameOf(event)} (ECN, RFC 3168).` }];
  }
  if (event.what === "timeout") {
    world.duplicates = 0;
    return [{ time, kind: "timeout", event, text: `${flow}The retransmission timer of the ${event.host} expires (RFC 6298).` }];
  }
  if (event.what === "receive" && event.frame === "ack" && event.flow === 0) {
    const repeats = event.acknowledgement !== undefined && event.acknowledgement === world.lastAcknowledgement;
    world.duplicates = repeats ? world.duplicates + 1 : 0;
    world.lastAcknowledgement = event.acknowledgement ?? -1;
  }
  if (event.what === "send" && event.retransmission) {
    const count = event.flow === 0 ? world.duplicates : 0;
    const after = count > 0 ? `${count} duplicate ${count === 1 ? "ACK" : "ACKs"}: ` : "";
    const rule = count > 0 ? "retransmits" : "Retransmits";
    world.duplicates = 0;
    const source = count > 0 ? " (fast retransmit, RFC 5681 and RFC 8985)" : "";
    return [{ time, kind: "retransmission", event, text: `${flow}${after}${rule} ${nameOf(event)}${source}.` }];
  }
  return [];
}

/** Returns the history of a packet's data: each event, with the rule behind it. */
export function historyOf(world: World, chosen: TraceEvent): string[] {
  const same = world.events.filter(
    (event) =>
      event.flow === chosen.flow &&
      event.direction === chosen.direction &&
      event.sequence === chosen.sequence &&
      event.length === chosen.length &&
      (chosen.length ? true : event.id === chosen.id),
  );
  const lines = same.map((event) => `${milliseconds(event.time)}  ${step(world, event)}`);
  if (chosen.length && chosen.sequence !== undefined) {
    const first = same[0]?.time ?? 0;
    const acknowledged = world.events.find(
      (event) =>
        event.what === "receive" &&
        event.direction === "reverse" &&
        event.flow === chosen.flow &&
        event.time > first &&
        (event.acknowledgement ?? -1) > chosen.sequence!,
    );
    if (acknowledged) lines.push(`${milliseconds(acknowledged.time)}  acknowledged cumulatively (RFC 9293, section 3.4)`);
  }
  return lines;
}

function step(world: World, event: TraceEvent): string {
  if (event.what === "send" && event.retransmission) {
    const expired = world.events.some(({ what, flow, time }) => what === "timeout" && flow === event.flow && time === event.time);
    return expired ? "retransmitted: the timer expired (RFC 6298, section 5.4)" : "retransmitted: ACKs show the loss (RFC 8985, section 6.2)";
  }
  if (event.what === "send") return `sent, ${event.size} bytes`;
  if (event.what === "drop") return `lost: ${event.reason}`;
  if (event.what === "receive") return "received";
  return event.what;
}

export const milliseconds = (seconds: number): string => `${(seconds * 1e3).toFixed(2)} ms`;
