// What the charts and facts of a trace show, collected from its events.
import { Coverage } from "./coverage";
import type { LogEvent, Visitor } from "./events";
import { fieldsOf, firstNumber, listOf, numberOf, textOf, type Fields } from "./fields";
import { Metrics } from "./metrics";
import { addPoint, NumberSpace } from "./number-space";
import { Sequences } from "./sequences";

export interface Mark {
  time: number;
  kind: "loss" | "timeout" | "state";
  label: string;
  row: number;
}

/** Packets or segments of one direction. */
export class Direction {
  readonly time: number[] = [];
  readonly bytes: number[] = [];
  /** Payload bytes that the log has for the first time. */
  readonly fresh: number[] = [];
  total = 0;
  totalFresh = 0;
  private readonly streams = new Map<string, Coverage>();

  add(time: number, bytes: number, fresh: number): void {
    this.time.push(time);
    this.bytes.push(bytes);
    this.fresh.push(fresh);
    this.total += bytes;
    this.totalFresh += fresh;
  }

  /** Returns how many bytes of a part of a stream are new. */
  advance(stream: string, from: number, length: number): number {
    let coverage = this.streams.get(stream);
    if (coverage === undefined) this.streams.set(stream, (coverage = new Coverage()));
    return coverage.add(from, from + length);
  }
}

/** The space of 0-RTT and 1-RTT packets. */
const APPLICATION = "application data";
const SPACES: Readonly<Record<string, string>> = {
  initial: "Initial",
  handshake: "Handshake",
  "0rtt": APPLICATION,
  "1rtt": APPLICATION,
  application_data: APPLICATION,
  onertt: APPLICATION,
};
const ACKS: ReadonlySet<string> = new Set(["ack", "path_ack"]);
/** Frames that elicit no ACK (RFC 9002, section 2). */
const SILENT: ReadonlySet<string> = new Set([...ACKS, "padding", "connection_close"]);

export class Connection implements Visitor {
  readonly spaces = new Map<string, NumberSpace>();
  readonly sequences = new Sequences();
  readonly metrics = new Metrics();
  readonly sent = new Direction();
  readonly received = new Direction();
  readonly marks: Mark[] = [];
  /** RTTs of ACKs: time and value, both in s. */
  readonly rtts: { time: number[]; value: number[] } = { time: [], value: [] };
  retransmissions = 0;
  /** Names of events that charts and facts use. */
  readonly used = new Set<string>();
  lost = 0;

  /** @param unit Milliseconds of the log's unit of time. */
  constructor(private readonly unit: number) {}

  visit(event: LogEvent, row: number): void {
    const kind = event.name.slice(event.name.lastIndexOf(":") + 1).toLowerCase();
    const action = ACTIONS[kind];
    if (action === undefined) return;
    this.used.add(event.name);
    action(this, event, row);
  }

  /** Returns the spaces with packets, the largest first. */
  get numberSpaces(): NumberSpace[] {
    const size = ({ sent, received }: NumberSpace): number => sent.time.length + received.time.length;
    return [...this.spaces.values()].filter((space) => size(space) > 0).sort((one, other) => size(other) - size(one));
  }

  packet({ time, data }: LogEvent, row: number, direction: "sent" | "received"): void {
    const header = fieldsOf(data["header"]);
    const space = this.space(data);
    const number = firstNumber(header, "packet_number") ?? firstNumber(data, "packet_number");
    const frames = Array.isArray(data["frames"]) ? data["frames"].map(fieldsOf) : undefined;
    const types = frames?.map((frame) => typeOf(frame));
    if (number !== undefined) {
      if (direction === "received") addPoint(space.received, time, number, row);
      else space.send(time, number, types === undefined || types.some((type) => !SILENT.has(type)), row);
    }
    let fresh = 0;
    for (const [place, frame] of (frames ?? []).entries()) {
      const type = types![place]!;
      if (ACKS.has(type) && direction === "received") this.acknowledge(this.acknowledgedSpace(data, type, frame), time, frame, row);
      if (type === "stream") fresh += this.stream(direction, frame);
    }
    const raw = fieldsOf(data["raw"]);
    const size = firstNumber(raw, "length") ?? firstNumber(header, "packet_size", "size") ?? firstNumber(data, "packet_size");
    this[direction].add(time, size ?? firstNumber(raw, "payload_length") ?? 0, fresh);
  }

  private stream(direction: "sent" | "received", frame: Fields): number {
    const length = firstNumber(frame, "length") ?? firstNumber(fieldsOf(frame["raw"]), "payload_length", "length") ?? 0;
    const stream = String(frame["stream_id"] ?? frame["id"] ?? "");
    return this[direction].advance(stream, firstNumber(frame, "offset") ?? 0, length);
  }

  private acknowledge(space: NumberSpace, time: number, frame: Fields, row: number): void {
    let rtt: number | undefined;
    for (const range of listOf(frame["acked_ranges"])) {
      const [low, high] = Array.isArray(range) ? range.map(numberOf) : [numberOf(range)];
      if (low !== undefined) rtt = space.acknowledge(time, low, high ?? low, row) ?? rtt;
    }
    if (rtt !== undefined) this.addRtt(time, rtt);
  }

  /** Numbers that a sender reports as acknowledged. */
  reported({ time, data }: LogEvent, row: number): void {
    const space = this.space(data);
    for (const number of listOf(data["packet_numbers"]).map(numberOf)) {
      if (number !== undefined) space.acknowledge(time, number, number, row);
    }
  }

  loss({ time, data }: LogEvent, row: number): void {
    const number = firstNumber(fieldsOf(data["header"]), "packet_number") ?? firstNumber(data, "packet_number");
    this.lost++;
    const space = this.space(data);
    if (number !== undefined) space.lose(time, number, row);
    this.marks.push({ time, kind: "loss", label: number === undefined ? "loss" : `loss of ${number}`, row });
  }

  segment({ time, data }: LogEvent, row: number, direction: "sent" | "received"): void {
    const raw = fieldsOf(data["raw"]);
    const header = fieldsOf(data["header"]);
    const length = firstNumber(raw, "payload_length") ?? 0;
    const sequence = firstNumber(header, "sequence");
    let fresh = 0;
    if (sequence !== undefined && length > 0) {
      fresh = this[direction].advance("", sequence - 1, length);
      const again = data["retransmission"] === true;
      if (again && direction === "sent") {
        this.retransmissions++;
        this.marks.push({ time, kind: "loss", label: "retransmission", row });
      }
      this.sequences.data(direction, { time, sequence, length, again, row });
    }
    const acknowledgement = firstNumber(header, "acknowledgement");
    if (acknowledgement !== undefined) {
      const rtt = this.sequences.acknowledge(direction, time, acknowledgement, listOf(header["sack"]), row);
      if (rtt !== undefined) this.addRtt(time, rtt);
    }
    this[direction].add(time, firstNumber(raw, "length") ?? length, fresh);
  }

  timer({ time, data }: LogEvent, row: number): void {
    if (data["event_type"] !== "expired") return;
    const timer = textOf(data["timer_type"])?.toUpperCase() ?? "timer";
    this.marks.push({ time, kind: "timeout", label: `${timer} expires`, row });
  }

  state({ time, data }: LogEvent, row: number): void {
    const state = textOf(data["new"]) ?? textOf(data["state"]);
    if (state !== undefined) this.marks.push({ time, kind: "state", label: state.replaceAll("_", " "), row });
  }

  measure({ time, data }: LogEvent): void {
    this.metrics.add(time, data, this.unit);
  }

  private addRtt(time: number, rtt: number): void {
    this.rtts.time.push(time);
    this.rtts.value.push(rtt);
  }

  /** Returns the space that an ACK of a packet is about. With several paths, ACK frames are about path 0, and PATH_ACK frames name theirs. */
  private acknowledgedSpace(data: Fields, type: string, frame: Fields): NumberSpace {
    const own = pathOf(data);
    return this.space(data, type === "path_ack" ? (frame["path_id"] ?? own) : own === undefined ? own : 0);
  }

  /** Returns the packet number space of an event and a path; that of 1-RTT packets if it names none. */
  private space(data: Fields, path = pathOf(data)): NumberSpace {
    const header = fieldsOf(data["header"]);
    const type = textOf(data["packet_number_space"]) ?? textOf(header["packet_type"]) ?? textOf(data["packet_type"]) ?? "1RTT";
    const own = SPACES[type.toLowerCase()] ?? type;
    const name = path === undefined || own === "Initial" || own === "Handshake" ? own : `${own}, path ${String(path)}`;
    let space = this.spaces.get(name);
    if (space === undefined) this.spaces.set(name, (space = new NumberSpace(name)));
    return space;
  }
}

/** Returns the path of a packet, which has its own packet numbers. */
const pathOf = (data: Fields): unknown => data["path_id"] ?? fieldsOf(data["header"])["path_id"];

const typeOf = (frame: Fields): string => (textOf(frame["frame_type"]) ?? "").toLowerCase();

type Action = (connection: Connection, event: LogEvent, row: number) => void;

const ACTIONS: Readonly<Record<string, Action>> = {
  packet_sent: (connection, event, row) => connection.packet(event, row, "sent"),
  packet_received: (connection, event, row) => connection.packet(event, row, "received"),
  packet_lost: (connection, event, row) => connection.loss(event, row),
  packets_acked: (connection, event, row) => connection.reported(event, row),
  segment_sent: (connection, event, row) => connection.segment(event, row, "sent"),
  segment_received: (connection, event, row) => connection.segment(event, row, "received"),
  metrics_updated: (connection, event) => connection.measure(event),
  recovery_metrics_updated: (connection, event) => connection.measure(event),
  metric_update: (connection, event) => connection.measure(event),
  timer_updated: (connection, event, row) => connection.timer(event, row),
  loss_timer_updated: (connection, event, row) => connection.timer(event, row),
  congestion_state_updated: (connection, event, row) => connection.state(event, row),
};
