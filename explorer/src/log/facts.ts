// Facts about a trace: its header, and sums of its packets.
import type { Connection } from "./connection";
import type { Events } from "./events";
import { fieldsOf, listOf, textOf, type Fields } from "./fields";
import { bytes, count, duration, milliseconds, number, percent, rate } from "./format";
import { versionOf, type LogFile, type LogTrace } from "./records";

export interface Fact {
  /** The fact's name in the page, for tests. */
  key: string;
  label: string;
  text: string;
  value?: number;
}

/** Returns the facts of a header that the log has. */
export function headerFacts(file: LogFile, trace: LogTrace, events: Events): Fact[] {
  const { header } = trace;
  const vantage = fieldsOf(header["vantage_point"]);
  const place = [textOf(vantage["name"]), textOf(vantage["type"])].filter((text, position, all) => text && all.indexOf(text) === position);
  const facts: [string, string, string | undefined][] = [
    ["title", "Title", titleOf(file, trace)],
    ["description", "Description", textOf(header["description"]) ?? textOf(file.header["description"])],
    ["vantage-point", "Vantage point", place.join(", ")],
    ["protocol", "Protocol", protocolOf(header, events)],
    ["implementation", "Implementation", implementationOf(file.header, header)],
    ["format", "Format", `${file.serialization}, ${(versionOf(file.header) ?? "").replace("urn:ietf:params:qlog:file:", "current draft, ")}`],
    ["start", "Start", events.clock.start?.toISOString()],
  ];
  return facts.flatMap(([key, label, text]) => (text ? [{ key, label, text }] : []));
}

export const titleOf = (file: LogFile, trace: LogTrace): string | undefined => textOf(trace.header["title"]) ?? textOf(file.header["title"]);

/** Returns the protocol that the header states, or that of the events. */
function protocolOf(header: Fields, events: Events): string {
  const common = fieldsOf(header["common_fields"]);
  const stated = [header["protocol_types"], common["protocol_types"], common["protocol_type"]].flatMap((value) => (Array.isArray(value) ? value : [value]));
  const schemas = listOf(header["event_schemas"]).map((schema) => String(schema).split(":").at(-1)!.split("-")[0]!);
  const names = [...stated, ...schemas].flatMap((name) => textOf(name)?.toUpperCase() ?? []);
  if (names.length > 0) return [...new Set(names)].join(", ");
  const namespaces = new Set(events.names.map((name) => name.split(":")[0]));
  if (namespaces.has("tcp")) return "TCP";
  return ["quic", "transport", "recovery"].some((name) => namespaces.has(name)) ? "QUIC" : "";
}

function implementationOf(file: Fields, header: Fields): string | undefined {
  const version = textOf(file["code_version"]) ?? textOf(fieldsOf(header["configuration"])["code_version"]);
  const title = textOf(file["title"]) ?? textOf(header["title"]);
  const known = IMPLEMENTATIONS.find((name) => title?.toLowerCase().includes(name));
  if (known !== undefined || version !== undefined) return [known, version].filter(Boolean).join(" ");
  const schemas = listOf(header["event_schemas"]).map(String);
  return schemas.some((schema) => schema.includes(":longfat:")) ? "longfat" : undefined;
}

/** Implementations whose logs have their name in the title. */
const IMPLEMENTATIONS = ["quic-go", "mvfst", "picoquic", "quiche", "quinn", "noq", "aioquic", "s2n-quic", "neqo", "lsquic"];

/** Returns sums over the whole trace. */
export function sums(connection: Connection, events: Events): Fact[] {
  const [from, to] = events.span;
  const facts: Fact[] = [
    { key: "events", label: "Events", text: count(events.length), value: events.length },
    { key: "duration", label: "Duration", text: duration(to - from), value: to - from },
  ];
  const { sent, received, sequences } = connection;
  const isTcp = sequences.sent.segments + sequences.received.segments > 0;
  const unit = isTcp ? "segment" : "packet";
  for (const [key, label, direction] of [["sent", "Sent", sent], ["received", "Received", received]] as const) {
    const packets = direction.time.length;
    if (packets === 0) continue;
    facts.push({ key: `${unit}s-${key}`, label, text: `${number(packets, unit)}, ${bytes(direction.total)}`, value: packets });
    facts.push({ key: `bytes-${key}`, label: "", text: "", value: direction.total });
  }
  facts.push(...(isTcp ? ofSegments(connection) : ofNumbers(connection)));
  facts.push(...ofRtts(connection));
  for (const [key, label, direction] of [["sent", "New data sent", sent], ["received", "New data received", received]] as const) {
    if (direction.totalFresh === 0 || to <= from) continue;
    const mean = (direction.totalFresh * 8) / (to - from);
    facts.push({ key: `new-${key}`, label, text: `${bytes(direction.totalFresh)}, mean ${rate(mean)}`, value: mean });
  }
  return facts;
}

function ofNumbers(connection: Connection): Fact[] {
  const spaces = connection.numberSpaces;
  const sum = (of: (space: (typeof spaces)[number]) => number): number => spaces.reduce((all, space) => all + of(space), 0);
  const packets = sum(({ sent }) => sent.time.length);
  if (packets === 0) return [];
  const acknowledged = sum((space) => space.acknowledged.time.length);
  const facts: Fact[] = [{ key: "acknowledged", label: "Acknowledged", text: number(acknowledged, "packet"), value: acknowledged }];
  const { lost } = connection;
  if (lost > 0) {
    const spurious = sum((space) => space.spurious);
    const text = `${number(lost, "packet")}${spurious > 0 ? `, ${count(spurious)} of them acknowledged` : ""}`;
    facts.push({ key: "lost", label: "Declared lost", text, value: lost });
    facts.push({ key: "loss-share", label: "Share declared lost", text: percent(lost / packets), value: lost / packets });
  } else {
    const unanswered = sum((space) => space.unanswered.time.length);
    facts.push({ key: "lost", label: "Declared lost", text: "no event", value: 0 });
    const text = `${number(unanswered, "packet")}, ${percent(unanswered / packets)}`;
    facts.push({ key: "unanswered", label: "Never acknowledged", text, value: unanswered });
  }
  return facts;
}

function ofSegments({ sequences, retransmissions }: Connection): Fact[] {
  const { sent, received } = sequences;
  const facts: Fact[] = [];
  const { acknowledgedBytes } = sent;
  if (sent.segments > 0) {
    facts.push({ key: "acknowledged", label: "Acknowledged", text: bytes(acknowledgedBytes), value: acknowledgedBytes });
    const text = `${count(retransmissions)} of ${count(sent.segments)} data segments, ${percent(retransmissions / sent.segments)}`;
    facts.push({ key: "retransmissions", label: "Retransmissions", text, value: retransmissions });
  }
  if (received.segments > 0 && received.acknowledgedBytes > 0) {
    const value = received.acknowledgedBytes;
    facts.push({ key: "acknowledged-received", label: "Acknowledged by this end", text: bytes(value), value });
  }
  return facts;
}

/** Returns facts about the RTTs that the log reports, or else about those of its packets and ACKs. */
function ofRtts({ metrics, rtts }: Connection): Fact[] {
  const reported = metrics.rtts.length > 0;
  const values = reported ? metrics.rtts : rtts.value.map((value) => value * 1e3);
  if (values.length === 0) return [];
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  const source = reported ? "" : " (from packets and ACKs)";
  return [
    { key: "min-rtt", label: "Smallest RTT", text: `${milliseconds(sorted[0]!)}${source}`, value: sorted[0]! },
    { key: "median-rtt", label: "Median RTT", text: `${milliseconds(median)}${source}`, value: median },
  ];
}
