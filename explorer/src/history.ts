// The history of a packet's data: each transmission, its way over the links, and the rule behind each decision.
import { sourceOfMarks } from "./decisions";
import type { TraceEvent } from "./engine";
import { milliseconds } from "./narrative";
import type { World } from "./world";

const DROPS: Readonly<Record<string, string>> = {
  queue: "queue, which is full or whose discipline drops it",
  loss: "loss, by the loss model of the link",
  mtu: "mtu, larger than the link allows (RFC 1191)",
  request: "request, you dropped it",
};

interface Line {
  time: number;
  text: string;
}

/** Returns the lines of a packet's history, in order of time. */
export function historyOf(world: World, chosen: TraceEvent): string[] {
  const same = world.events.filter(
    (event) =>
      isSameStream(event, chosen) &&
      event.direction === chosen.direction &&
      event.sequence === chosen.sequence &&
      event.length === chosen.length &&
      (chosen.length ? true : event.id === chosen.id),
  );
  const lines: Line[] = same.map((event) => ({ time: event.time, text: step(world, event) }));
  const ids = new Set(same.map(({ id }) => id));
  for (const id of ids) if (id !== undefined) lines.push(...waysOf(world, id));
  lines.push(...acknowledgements(world, chosen, same[0]?.time ?? chosen.time));
  lines.sort((one, other) => one.time - other.time);
  return lines.map(({ time, text }) => `${milliseconds(time)}  ${text}`);
}

const isSameStream = (event: TraceEvent, chosen: TraceEvent): boolean =>
  event.flow === chosen.flow && event.subflow === chosen.subflow;

function step(world: World, event: TraceEvent): string {
  switch (event.what) {
    case "send":
      if (event.retransmission) return `retransmitted: ${world.rules.get(event) ?? "the sender declares it lost"}`;
      return `sent, ${event.size} bytes`;
    case "drop":
      return `lost: ${DROPS[event.reason ?? ""] ?? event.reason}`;
    case "mark":
      return `marked by the queue (${sourceOfMarks(world.groups.protocolOf(event.flow))})`;
    case "receive":
      return "received";
    default:
      return event.what;
  }
}

/** Returns the waits of a packet in queues. */
function waysOf(world: World, id: number): Line[] {
  const packet = world.packets.find(id);
  const known = packet?.hops.filter(({ start }) => start !== undefined && start <= world.now) ?? [];
  return known.map(({ link, entered, start }) => {
    const waited = start! - entered;
    const name = world.network.links[link] ?? "the link";
    return { time: start!, text: waited > 1e-9 ? `leaves the queue of ${name} after ${milliseconds(waited)}` : `sent on ${name} at once` };
  });
}

/** Returns the first selective and the first cumulative acknowledgement of data. */
function acknowledgements(world: World, chosen: TraceEvent, first: number): Line[] {
  const { sequence, length } = chosen;
  if (!length || sequence === undefined) return [];
  const acks = world.events.filter(
    (event) =>
      event.what === "receive" && event.direction !== chosen.direction && isSameStream(event, chosen) && event.time > first,
  );
  const cumulative = acks.find(({ acknowledgement }) => (acknowledgement ?? -1) > sequence);
  const covers = (event: TraceEvent): boolean =>
    event.sack?.some(([start, end]) => start <= sequence && sequence < end && sequence >= (event.acknowledgement ?? 0)) ?? false;
  const selective = acks.find((event) => event.time < (cumulative?.time ?? Infinity) && covers(event));
  return [
    ...(selective ? [{ time: selective.time, text: "acknowledged selectively (RFC 2018)" }] : []),
    ...(cumulative ? [{ time: cumulative.time, text: "acknowledged cumulatively (RFC 9293, section 3.4)" }] : []),
  ];
}
