// A study file as a scene: the reverse of the export. A key that the page cannot show is an error that names it.
import { parse } from "smol-toml";
import { PROTOCOLS, protocolKey } from "./protocols";
import { checked, DEFAULT, MOST_WORLDS, type Scene } from "./scene";

type Table = Record<string, unknown>;

/** Keys without effect on a trial: texts, tables and claims. */
const SILENT = new Set([
  ..."title source description notes show claims reported worlds repeats repeats_in max_repeats precision".split(" "),
]);
/** The default queue of a study's path. */
const QUEUE = "1000pkt";

export interface Opened {
  scene: Scene;
  /** Differences between the page and a run of the study. */
  notes: string[];
}

/** Returns the scene of a study file's text, with the speed of `present`, or throws with the first key that the page cannot show. */
export function sceneOf(text: string, present: Scene): Opened {
  const study = tables(text);
  const notes: string[] = [];
  const { sweep, seed, path, topology, workload, protocols, extends: base, ...others } = study;
  if (base !== undefined) refuse("extends", "the page reads one file: copy the keys of the extended study into it");
  if (topology !== undefined) refuse("topology");
  for (const key of Object.keys(others)) if (!SILENT.has(key)) refuse(key);
  const swept = table("sweep", sweep ?? {});
  const study_ = { path: table("path", path ?? {}), workload: table("workload", workload), protocols: entries(protocols) };
  const first = Object.entries(swept).map(([key, values]) => choose(study_, key, values));
  if (first.length > 0) notes.push(`The page shows one cell of the sweep: ${first.join(", ")}.`);
  const scene: Scene = {
    ...DEFAULT,
    speed: present.speed,
    seed: integer("seed", seed ?? 1),
    ...pathOf(study_.path),
    ...workloadOf(study_.workload, notes),
    ...protocolsOf(study_.protocols, notes),
  };
  return { scene: checked(scene), notes };
}

function refuse(key: string, reason = "the explorer cannot show this key"): never {
  throw new Error(`${key}: ${reason}`);
}

function tables(text: string): Table {
  try {
    return parse(text);
  } catch (error) {
    const { line, message } = error as { line?: number; message: string };
    const place = line === undefined ? "" : `line ${line}: `;
    throw new Error(`${place}not TOML: ${message.split("\n")[0]!.replace(/^Invalid TOML document: /, "")}`);
  }
}

function table(key: string, value: unknown): Table {
  if (value === undefined) refuse(key, "the key is missing");
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(key, "expected a table");
  return value as Table;
}

function string(key: string, value: unknown): string {
  if (typeof value === "string") return value;
  return refuse(key, typeof value === "object" ? "the explorer cannot show this table" : "expected a text with a unit");
}

function integer(key: string, value: unknown): number {
  return typeof value === "number" ? value : refuse(key, "expected a number");
}

function pathOf(path: Table): Partial<Scene> {
  const { rate, delay = "0ms", jitter = DEFAULT.jitter, loss = DEFAULT.loss, queue = QUEUE, ...others } = path;
  for (const key of Object.keys(others)) refuse(`path.${key}`);
  if (rate === undefined) refuse("path.rate", "the key is missing: the page shows no unlimited rate");
  return {
    rate: string("path.rate", rate),
    delay: string("path.delay", delay),
    jitter: string("path.jitter", jitter),
    loss: string("path.loss", loss),
    ...queueOf(queue),
  };
}

function queueOf(queue: unknown): Partial<Scene> {
  if (typeof queue === "string") return /^\s*\d/.test(queue) ? { queue } : { discipline: queue, queue: QUEUE };
  const { kind = "drop-tail", limit = QUEUE, ...others } = table("path.queue", queue);
  for (const key of Object.keys(others)) refuse(`path.queue.${key}`);
  return { discipline: string("path.queue.kind", kind), queue: string("path.queue.limit", limit) };
}

function workloadOf(workload: Table, notes: string[]): Partial<Scene> {
  const { kind, size, flows = 1, duration, warm_up, ...others } = workload;
  for (const key of Object.keys(others)) refuse(`workload.${key}`);
  if (kind !== "bulk" && kind !== "file") refuse("workload.kind", `the explorer shows "bulk" and "file"`);
  if (warm_up !== undefined) notes.push("The page measures without workload.warm_up.");
  if (duration !== undefined) notes.push("The page runs longer than workload.duration.");
  return { size: kind === "file" ? string("workload.size", size) : "", flows: integer("workload.flows", flows) };
}

function entries(protocols: unknown): Table[] {
  if (!Array.isArray(protocols) || protocols.length === 0) refuse("protocols", "expected a list");
  return protocols.map((entry: unknown, place) =>
    typeof entry === "string" ? named(entry) : { ...table(`protocols[${place + 1}]`, entry) },
  );
}

/** A protocol by its kind or by its controller, as a study's list of names. */
const named = (name: string): Table => ({ ...(PROTOCOLS[name]?.key ?? { kind: name }), name });

function protocolsOf(protocols: Table[], notes: string[]): Partial<Scene> {
  const shown = protocols.slice(0, MOST_WORLDS);
  if (shown.length < protocols.length) notes.push(`The page shows the first ${MOST_WORLDS} of ${protocols.length} protocols.`);
  const windows = new Set<number>();
  const worlds = shown.map((entry, place) => worldOf(entry, `protocols[${place + 1}]`, windows));
  if (windows.size > 1) refuse("protocols.window", `the page has one ARQ window, the study has ${[...windows].join(", ")}`);
  return { worlds, ...(windows.size > 0 ? { window: [...windows][0]! } : {}) };
}

function worldOf({ name: _, ...entry }: Table, where: string, windows: Set<number>): string {
  const window = typeof entry["window"] === "number" ? entry["window"] : DEFAULT.window;
  const keyOf = (name: string): Table => protocolKey(name, window);
  const names = Object.keys(PROTOCOLS);
  const found = names.find((name) => differing(entry, keyOf(name)) === undefined);
  if (found !== undefined) {
    if ("window" in keyOf(found)) windows.add(window);
    return found;
  }
  // The key that separates the entry from the most similar protocol of the page.
  const same = (name: string): number => Object.keys(entry).filter((key) => equal(entry[key], keyOf(name)[key])).length;
  const nearest = names.reduce((best, name) => (same(name) > same(best) ? name : best));
  const key = differing(entry, keyOf(nearest))!;
  const missing = !(key in entry);
  return refuse(`${where}.${key}`, missing ? "the key is missing: the explorer cannot show its default" : undefined);
}

/** Returns the first key in which two tables differ. */
function differing(one: Table, other: Table): string | undefined {
  return [...Object.keys(one), ...Object.keys(other)].find((key) => !equal(one[key], other[key]));
}

const equal = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Sets a swept key to its first value, and returns both as text. */
function choose(study: { path: Table; workload: Table; protocols: Table[] }, key: string, values: unknown): string {
  const value = firstOf(`sweep."${key}"`, values);
  const [root, ...rest] = key.split(".");
  if (root === "path" || root === "workload") place(study[root], rest, value, key);
  else if (root === "protocol") for (const entry of study.protocols) place(entry, rest, value, key);
  else if (root === "protocols") {
    const [name, ...inner] = rest;
    const entry = study.protocols.find((one) => (one["name"] ?? one["congestion"] ?? one["kind"]) === name);
    if (entry) place(entry, inner, value, key);
  } else refuse(`sweep."${key}"`);
  return `${key} = ${String(value)}`;
}

/** The first value of a sweep: a list, whose values can have labels, or a range. */
function firstOf(where: string, values: unknown): unknown {
  const first: unknown = Array.isArray(values) ? values[0] : (values as Table | null)?.["from"];
  if (first === undefined) refuse(where, "expected a list or a range");
  if (typeof first !== "object" || first === null) return first;
  const { label, value } = first as Table;
  return label === undefined ? first : value;
}

function place(target: Table, keys: readonly string[], value: unknown, whole: string): void {
  const [key, ...inner] = keys;
  if (key === undefined) refuse(`sweep."${whole}"`);
  if (inner.length === 0) target[key] = value;
  else {
    const nested = target[key];
    target[key] = typeof nested === "object" && nested !== null ? { ...nested } : {};
    place(target[key] as Table, inner, value, whole);
  }
}
