// The page that shows qlog files.
import { isNative } from "../native";
import { LogCharts } from "./charts";
import { Connection } from "./connection";
import { EventTable } from "./event-table";
import { Events } from "./events";
import { headerFacts, sums, titleOf, type Fact } from "./facts";
import { bytes, count, number } from "./format";
import { LARGEST_BYTES, LogError, readLog, versionNote, type LogFile } from "./records";
import { View } from "./view";

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const message = by<HTMLParagraphElement>("message");
const status = by<HTMLParagraphElement>("log-status");

const view = new View();
const table = new EventTable(
  { list: by("log-events"), names: by("log-names"), text: by("log-text"), shown: by("log-shown"), details: by("log-event") },
  view,
);
const charts = new LogCharts(by("log-charts"), view, (time) => table.chooseNear(time));

let file: { name: string; log: LogFile } | undefined;
let connection: Connection | undefined;
/** Number of the reading, which a later one replaces. */
let reading = 0;

function fail(text: string): void {
  message.textContent = text;
  message.hidden = text === "";
}

/** Lets the page draw what it has. */
const pause = (): Promise<void> => new Promise((done) => setTimeout(done));

/** Runs one reading of a file; an error is a message. */
async function attempt(name: string, read: (turn: number) => Promise<void>): Promise<void> {
  const turn = ++reading;
  fail("");
  by("log").hidden = true;
  status.textContent = `Reading ${name} …`;
  await pause();
  try {
    await read(turn);
  } catch (error) {
    if (turn !== reading) return;
    status.textContent = "";
    fail(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const open = (blob: Blob, name: string): Promise<void> =>
  attempt(name, async (turn) => {
    if (blob.size > LARGEST_BYTES) throw new LogError(`the file has ${bytes(blob.size)}; the page reads up to ${bytes(LARGEST_BYTES)}`);
    const log = readLog(await blob.text());
    file = { name, log };
    const traces = by<HTMLSelectElement>("log-trace");
    traces.replaceChildren(...log.traces.map((trace, place) => new Option(`${place + 1}: ${titleOf(log, trace) ?? "trace"}, ${number(trace.events.length, "event")}`, String(place))));
    traces.closest("label")!.hidden = log.traces.length < 2;
    await show(0, turn);
  });

/** Shows a trace of the file. */
async function show(place: number, turn: number): Promise<void> {
  const { name, log } = file!;
  const trace = log.traces[place]!;
  const events = new Events(trace);
  const read = await events.read(
    () => new Connection(events.clock.unit),
    async (done) => {
      if (turn !== reading) throw new LogError("replaced");
      status.textContent = `Reading ${name}: ${count(done)} of ${count(trace.events.length)} events`;
      await pause();
    },
  );
  connection = read;
  document.title = `longfat log: ${name}`;
  status.textContent = summary(name, log, events, read);
  by("log").hidden = false;
  list(by("log-header"), headerFacts(log, trace, events));
  list(by("log-sums"), sums(read, events));
  listNames(events, read);
  const spaces = by<HTMLSelectElement>("log-space");
  spaces.replaceChildren(...read.numberSpaces.map(({ name: space, sent, received }) => new Option(`${space} (${count(sent.time.length)} sent, ${count(received.time.length)} received)`, space)));
  spaces.closest("label")!.hidden = read.numberSpaces.length < 2;
  by("log-charts-part").hidden = events.length === 0;
  charts.show(undefined, undefined);
  view.reset(events.span);
  charts.show(read, read.numberSpaces[0]);
  table.show(events);
  const marks = new Set<string>(read.marks.map(({ kind }) => kind));
  for (const item of by("log-marks").children as Iterable<HTMLElement>) item.hidden = !marks.has(item.className);
}

/** Returns one line about what was read, and what was left out. */
function summary(name: string, log: LogFile, events: Events, { used, numberSpaces }: Connection): string {
  const left = [...log.notes];
  const version = versionNote(log.header);
  if (version !== undefined) left.push(version);
  const invalid = events.invalid - (events.truncated ? 1 : 0);
  if (events.truncated) left.push("the last record is incomplete and left out");
  if (invalid > 0) left.push(`${number(invalid, "record")} without a valid event or time left out`);
  if (events.groups.size > 1) left.push(`events of ${count(events.groups.size)} connections (group_id) share the charts`);
  const repeated = numberSpaces.reduce((all, space) => all + space.repeated, 0);
  if (repeated > 0) left.push(`${number(repeated, "sent packet")} with a number of an earlier one, as of several paths, whose ACKs are ambiguous`);
  const others = events.names.filter((one) => !used.has(one));
  const unused = others.reduce((all, one) => all + events.counts[events.names.indexOf(one)]!, 0);
  if (unused > 0) left.push(`${number(unused, "event")} of ${number(others.length, "name")} only in the list`);
  const read = events.length === 0 ? "the log has no events" : number(events.length, "event");
  return `${name}: ${[read, ...left].join("; ")}.`;
}

function list(parent: HTMLElement, facts: readonly Fact[]): void {
  parent.replaceChildren(
    ...facts.map(({ key, label, text, value }) => {
      const pair = document.createElement("div");
      const [term, definition] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = label;
      definition.textContent = text;
      definition.dataset["fact"] = key;
      if (value !== undefined) definition.dataset["value"] = String(value);
      pair.append(term, definition);
      pair.hidden = label === "";
      return pair;
    }),
  );
}

/** Lists the names of events, and whether charts and sums use them. */
function listNames(events: Events, { used }: Connection): void {
  const order = events.names.map((name, kind) => ({ name, found: events.counts[kind]! })).sort((one, other) => other.found - one.found);
  by("log-kinds").replaceChildren(
    ...order.map(({ name, found }) => {
      const row = document.createElement("tr");
      for (const text of [name, count(found), used.has(name) ? "charts and list" : "list only"]) row.insertCell().textContent = text;
      return row;
    }),
  );
}

function connect(): void {
  const input = by<HTMLInputElement>("log-file");
  by("log-open").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    const chosen = input.files?.[0];
    if (chosen) void open(chosen, chosen.name);
    input.value = "";
  });
  document.body.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("drop");
  });
  document.body.addEventListener("dragleave", () => document.body.classList.remove("drop"));
  document.body.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("drop");
    const dropped = event.dataTransfer?.files[0];
    if (dropped) void open(dropped, dropped.name);
  });
  by("log-trace").addEventListener("change", (event) => {
    const place = Number((event.target as HTMLSelectElement).value);
    void attempt(file!.name, (turn) => show(place, turn));
  });
  by("log-space").addEventListener("change", (event) => {
    const { value } = event.target as HTMLSelectElement;
    charts.show(connection, connection?.spaces.get(value));
  });
  const [from, to] = [by<HTMLInputElement>("log-from"), by<HTMLInputElement>("log-to")];
  const zoom = (): void => view.zoom(from.valueAsNumber, to.valueAsNumber);
  from.addEventListener("change", zoom);
  to.addEventListener("change", zoom);
  by("log-all").addEventListener("click", () => view.showAll());
  view.onChange(([first, last]) => {
    from.value = String(Number(first.toFixed(6)));
    to.value = String(Number(last.toFixed(6)));
    by<HTMLButtonElement>("log-all").disabled = !view.zoomed;
  });
}

/** Opens the file that `longfat explore FILE` serves. */
function openServed(): void {
  const query = new URLSearchParams(location.search);
  const name = query.get("log");
  if (isNative()) by<HTMLAnchorElement>("to-explorer").search = "?engine=native";
  if (name === null) return;
  void attempt(name, async () => {
    const response = await fetch("log.qlog");
    if (!response.ok) throw new LogError("the file is not there any more");
    await open(await response.blob(), name);
  });
}

connect();
openServed();
