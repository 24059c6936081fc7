// Times of events in s, for every time format of qlog.
import { fieldsOf, numberOf, textOf, type Fields } from "./fields";

const ABSOLUTE = new Set(["absolute"]);
const DELTA = new Set(["delta", "relative_to_previous_event"]);
/** Times in ms from here on are since 1970, whatever the format says: 1973. */
const SINCE_1970_MS = 1e11;

export class Clock {
  private readonly format: string;
  /** Milliseconds of a unit of the log. */
  readonly unit: number;
  private last = 0;
  private zero: number | undefined;

  constructor(private readonly header: Fields) {
    const [common, configuration] = [fieldsOf(header["common_fields"]), fieldsOf(header["configuration"])];
    this.format = textOf(common["time_format"] ?? configuration["time_format"]) ?? "relative";
    this.unit = textOf(configuration["time_units"]) === "us" ? 1e-3 : 1;
  }

  /** Returns the time of the next event of the log in s; undefined without a time. Absolute times start at the first event. */
  next(time: unknown, format?: string): number | undefined {
    const given = numberOf(time);
    if (given === undefined) return undefined;
    let now = given * this.unit;
    if (DELTA.has(format ?? this.format)) now += this.last;
    this.last = now;
    this.zero ??= ABSOLUTE.has(format ?? this.format) || now >= SINCE_1970_MS ? now : 0;
    return (now - this.zero) / 1e3;
  }

  /** Returns the wall-clock time of second 0, if the log has it. */
  get start(): Date | undefined {
    const reference = fieldsOf(this.header["common_fields"])["reference_time"];
    if (this.zero !== undefined && this.zero >= SINCE_1970_MS) return dateOf(this.zero);
    const { wall_clock_time, epoch } = fieldsOf(reference);
    const since = numberOf(reference);
    return dateOf(wall_clock_time) ?? dateOf(epoch) ?? (since === undefined ? undefined : dateOf(since * this.unit));
  }
}

function dateOf(value: unknown): Date | undefined {
  if (typeof value === "number" && value < SINCE_1970_MS) return undefined;
  const found = typeof value === "number" || typeof value === "string" ? new Date(value) : undefined;
  return found && Number.isFinite(found.getTime()) && found.getTime() >= SINCE_1970_MS ? found : undefined;
}
