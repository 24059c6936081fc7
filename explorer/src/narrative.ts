// A sentence for each important event, with the rule and its source.
import { sourceOfMarks } from "./decisions";
import type { TraceEvent } from "./engine";
import type { World } from "./world";

export interface Sentence {
  time: number;
  text: string;
  kind: "loss" | "timeout" | "retransmission" | "state" | "mark" | "intervention";
  event?: TraceEvent;
  /** Further retransmissions at the same time, and repetitions of a state. */
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

/** Returns the sentences about an event. */
export function sentences(world: World, event: TraceEvent): Sentence[] {
  const { time } = event;
  const flow = world.groups.prefix(event.flow, event.subflow);
  if (event.what === "drop") {
    const cause = DROPS[event.reason ?? ""] ?? `Dropped (${event.reason ?? "unknown reason"})`;
    return [{ time, kind: "loss", event, text: `${flow}${cause}: ${nameOf(event)} is lost.` }];
  }
  if (event.what === "mark") {
    const source = sourceOfMarks(world.groups.protocolOf(event.flow));
    return [{ time, kind: "mark", event, text: `${flow}The queue marks ${nameOf(event)} (${source}).` }];
  }
  if (event.what === "timeout" && event.host === "receiver") {
    return [{ time, kind: "timeout", event, text: `${flow}The retransmission timer of the receiver expires (RFC 6298).` }];
  }
  if (event.what === "send" && event.retransmission) {
    const rule = world.rules.get(event);
    return [{ time, kind: "retransmission", event, text: `${flow}Retransmits ${nameOf(event)}${rule ? `: ${rule}` : ""}.` }];
  }
  return [];
}

export const milliseconds = (seconds: number): string => `${(seconds * 1e3).toFixed(2)} ms`;
