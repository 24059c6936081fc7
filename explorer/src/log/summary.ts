// One line of text for an event.
import type { LogEvent } from "./events";
import { fieldsOf, firstNumber, isFields, listOf, textOf, type Fields } from "./fields";

/** Characters of a line. */
const MOST = 200;
const MOST_RANGES = 3;

export function summaryOf({ data }: LogEvent): string {
  const header = fieldsOf(data["header"]);
  const raw = fieldsOf(data["raw"]);
  const type = textOf(header["packet_type"]) ?? textOf(data["packet_type"]);
  const number = firstNumber(header, "packet_number") ?? firstNumber(data, "packet_number");
  const sequence = firstNumber(header, "sequence");
  if (type === undefined && number === undefined && sequence === undefined) return shortened(plain(data));
  const size = firstNumber(raw, "length") ?? firstNumber(header, "packet_size");
  const length = firstNumber(raw, "payload_length") ?? 0;
  const acknowledgement = firstNumber(header, "acknowledgement");
  const parts = [
    [type, number].filter((part) => part !== undefined).join(" "),
    sequence === undefined ? "" : [textOf(header["type"]), length > 0 ? `${sequence} to ${sequence + length - 1}` : `at ${sequence}`].join(" "),
    acknowledgement === undefined ? "" : `ACK ${acknowledgement}`,
    listOf(header["sack"]).length > 0 ? `SACK ${ranges(listOf(header["sack"]))}` : "",
    data["retransmission"] === true ? "retransmission" : "",
    size === undefined ? "" : `${size} B`,
    ...listOf(data["frames"]).map((frame) => frameText(fieldsOf(frame))),
    textOf(data["trigger"]) ?? "",
  ];
  return shortened(merged(parts.filter((part) => part !== "")).join(", "));
}

function frameText(frame: Fields): string {
  const type = (textOf(frame["frame_type"]) ?? "frame").toLowerCase().replaceAll("_", " ");
  if (type === "ack") return `ack ${ranges(listOf(frame["acked_ranges"]))}`;
  if (type !== "stream") return type;
  const [offset, length] = [firstNumber(frame, "offset"), firstNumber(frame, "length") ?? firstNumber(fieldsOf(frame["raw"]), "payload_length")];
  const place = offset === undefined ? "" : ` at ${offset}${length === undefined ? "" : ` (${length} B)`}`;
  return `stream ${String(frame["stream_id"] ?? frame["id"] ?? "")}${place}${frame["fin"] === true ? " fin" : ""}`;
}

/** Returns the last ranges, which are the latest of an ACK in ascending order. */
function ranges(all: readonly unknown[]): string {
  const texts = all.map((range) => (Array.isArray(range) ? [...new Set(range.map(String))].join("–") : String(range)));
  return texts.length > MOST_RANGES ? `${texts.slice(0, MOST_RANGES).join(", ")}, …` : texts.join(", ");
}

/** Returns equal neighbours as one with their number. */
function merged(parts: readonly string[]): string[] {
  const found: { text: string; times: number }[] = [];
  for (const text of parts) {
    const last = found.at(-1);
    if (last?.text === text) last.times++;
    else found.push({ text, times: 1 });
  }
  return found.map(({ text, times }) => (times > 1 ? `${times} × ${text}` : text));
}

function plain(data: Fields): string {
  return Object.entries(data)
    .map(([name, value]) => `${name} ${isFields(value) || Array.isArray(value) ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

const shortened = (text: string): string => (text.length > MOST ? `${text.slice(0, MOST)}…` : text);
