// Records of a qlog file: JSON text sequences (RFC 7464), newline-delimited JSON, and JSON.
import { fieldsOf, isFields, listOf, textOf, type Fields } from "./fields";
import { number } from "./format";
import { salvaged } from "./salvage";

const SEPARATOR = "\x1e";
/** A browser's texts have at most about 500 million characters. */
export const LARGEST_BYTES = 400e6;

export interface LogTrace {
  /** The trace without its events. */
  header: Fields;
  /** JSON of each event. */
  events: readonly string[];
}

export interface LogFile {
  /** The file without its traces. */
  header: Fields;
  serialization: "JSON-SEQ" | "NDJSON" | "JSON";
  traces: readonly LogTrace[];
  /** What the reader left out. */
  notes: readonly string[];
}

/** A file that cannot be read as qlog. */
export class LogError extends Error {}

/** Returns the traces of a file. Throws LogError. */
export function readLog(text: string): LogFile {
  const content = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (content.trim() === "") throw new LogError("the file is empty");
  const start = content.trimStart();
  if (start.startsWith(SEPARATOR)) return sequence(start.split(SEPARATOR), "JSON-SEQ");
  if (!start.startsWith("{")) throw new LogError("not a qlog file: qlog is JSON, and starts with { or a record separator");
  const line = start.indexOf("\n");
  const first = line > 0 && start.slice(line).trim() !== "" ? parsed(start.slice(0, line)) : undefined;
  return isFields(first) && !("traces" in first) ? sequence(start.split("\n"), "NDJSON") : oneDocument(start);
}

/** Returns the value of JSON, or undefined. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads a header, and one event in each further record. Events are checked when they are interpreted. */
function sequence(records: readonly string[], serialization: "JSON-SEQ" | "NDJSON"): LogFile {
  const [head, ...events] = records.filter((record) => record.trim() !== "");
  const value = parsed(head ?? "");
  if (!isFields(value)) throw new LogError("the first record, the header of the log, is not valid JSON");
  const { trace, ...header } = value;
  checkHeader(header);
  return { header, serialization, traces: [{ header: fieldsOf(trace), events }], notes: [] };
}

function oneDocument(text: string): LogFile {
  const notes: string[] = [];
  let value = parsed(text);
  if (value === undefined) {
    value = salvaged(text);
    if (value === undefined) throw new LogError("not a qlog file: it is not valid JSON");
    notes.push("the file ends in the middle of a record, which is left out");
  }
  const { traces, ...header } = fieldsOf(value);
  checkHeader(header);
  const found: LogTrace[] = [];
  let failed = 0;
  for (const trace of listOf(traces)) {
    const { events, ...own } = fieldsOf(trace);
    if (Array.isArray(events)) found.push({ header: own, events: events.map((event) => JSON.stringify(event)) });
    else failed++;
  }
  if (failed > 0) notes.push(`${failed} of ${number(failed + found.length, "trace")} without events left out`);
  if (found.length === 0) throw new LogError("the file has no trace with events");
  return { header, serialization: "JSON", traces: found, notes };
}

function checkHeader(header: Fields): void {
  if (versionOf(header) === undefined) throw new LogError("not a qlog file: its header has neither qlog_version nor file_schema");
}

/** Returns the version or schema of a header. */
export const versionOf = (header: Fields): string | undefined => {
  const version = header["qlog_version"];
  return textOf(header["file_schema"]) ?? textOf(typeof version === "number" ? String(version) : version);
};

const SCHEMAS = ["urn:ietf:params:qlog:file:contained", "urn:ietf:params:qlog:file:sequential"];

/** Returns a note about a version other than 0.3, 0.4 and the current draft. */
export function versionNote(header: Fields): string | undefined {
  const version = versionOf(header) ?? "";
  if (["0.3", "0.4", ...SCHEMAS].includes(version)) return undefined;
  const age = /^(draft-0|0\.[12]$)/.test(version) ? "older than 0.3" : "unknown to this page";
  return `qlog version ${version} is ${age}, so the charts may lack fields`;
}
