// Events of a trace by time and name.
import { Clock } from "./clock";
import { fieldsOf, isFields, listOf, textOf, type Fields } from "./fields";
import { parsed, type LogTrace } from "./records";

export interface LogEvent {
  /** In s. */
  time: number;
  name: string;
  data: Fields;
}

/** Collects what a view needs from events in the order of time. */
export interface Visitor {
  visit(event: LogEvent, row: number): void;
}

/** Parts of this many events, between which the page reacts. */
const PART = 20_000;

/** The events of a trace in the order of time. */
export class Events {
  times: number[] = [];
  /** JSON of each event. */
  texts: string[] = [];
  /** Place of each event's name in `names`. */
  kinds: number[] = [];
  readonly names: string[] = [];
  /** Events of each name. */
  readonly counts: number[] = [];
  /** Records that are not valid events. */
  invalid = 0;
  /** Connections that events name in `group_id`. */
  readonly groups = new Set<string>();
  /** Whether the last record is incomplete. */
  truncated = false;
  readonly clock: Clock;
  /** Names of the values of events that are lists. */
  private readonly fields: readonly string[];
  private readonly known = new Map<string, number>();

  constructor(private readonly trace: LogTrace) {
    this.clock = new Clock(trace.header);
    this.fields = listOf(trace.header["event_fields"]).map((field) => String(field).toLowerCase());
  }

  get length(): number {
    return this.times.length;
  }

  /** Returns the earliest and the latest time in s. */
  get span(): [number, number] {
    return [this.times[0] ?? 0, this.times.at(-1) ?? 0];
  }

  /** Reads all events and returns their visitor. Awaits `pause` between parts. */
  async read<T extends Visitor>(create: () => T, pause: (done: number) => Promise<void>): Promise<T> {
    let visitor = create();
    let sorted = true;
    for (const [place, text] of this.trace.events.entries()) {
      if (place > 0 && place % PART === 0) await pause(place);
      const event = this.parsed(text);
      if (event === undefined) {
        this.invalid++;
        this.truncated = place === this.trace.events.length - 1 && parsed(text) === undefined;
        continue;
      }
      sorted &&= event.time >= (this.times.at(-1) ?? -Infinity);
      this.times.push(event.time);
      this.texts.push(text);
      this.kinds.push(this.kind(event.name));
      if (sorted) visitor.visit(event, this.length - 1);
    }
    if (!sorted) {
      this.sort();
      visitor = create();
      for (let row = 0; row < this.length; row++) {
        if (row % PART === 0) await pause(row);
        visitor.visit(this.at(row), row);
      }
    }
    return visitor;
  }

  /** Returns an event. */
  at(row: number): LogEvent {
    const { data } = this.record(parsed(this.texts[row]!))!;
    return { time: this.times[row]!, name: this.names[this.kinds[row]!]!, data: fieldsOf(data) };
  }

  private parsed(text: string): LogEvent | undefined {
    const record = this.record(parsed(text));
    const time = record && this.clock.next(record["time"], textOf(record["time_format"]));
    const group = record?.["group_id"];
    if (group !== undefined) this.groups.add(typeof group === "string" ? group : JSON.stringify(group));
    return record === undefined || time === undefined ? undefined : { time, name: nameOf(record), data: fieldsOf(record["data"]) };
  }

  /** Returns the fields of an event, which is a list before version 0.3, with the data as the last value. */
  private record(value: unknown): Fields | undefined {
    if (!Array.isArray(value)) return isFields(value) ? value : undefined;
    const found: Fields = Object.fromEntries(this.fields.map((field, place) => [field, value[place]]));
    const name = `${found["category"]}:${found["event"] ?? found["event_type"] ?? found["type"]}`.toLowerCase();
    const time = found["relative_time"] ?? found["time"] ?? found["delta_time"];
    return { time, name, data: value.at(-1), ...("delta_time" in found ? { time_format: "delta" } : {}) };
  }

  private kind(name: string): number {
    let kind = this.known.get(name);
    if (kind === undefined) {
      kind = this.names.push(name) - 1;
      this.known.set(name, kind);
      this.counts.push(0);
    }
    this.counts[kind]!++;
    return kind;
  }

  private sort(): void {
    const order = this.times.map((_, row) => row).sort((one, other) => this.times[one]! - this.times[other]! || one - other);
    this.times = order.map((row) => this.times[row]!);
    this.texts = order.map((row) => this.texts[row]!);
    this.kinds = order.map((row) => this.kinds[row]!);
  }
}

/** Returns the name of an event with its category or namespace. */
function nameOf(record: Fields): string {
  const name = textOf(record["name"]);
  if (name !== undefined) return name;
  const type = textOf(record["type"] ?? record["event"]) ?? "unnamed";
  const category = textOf(record["category"]);
  return category === undefined ? type : `${category}:${type}`;
}
