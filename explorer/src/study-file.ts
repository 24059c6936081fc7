// A study file as a scene: the reverse of the export. A key that the page cannot show is an error that names it.
import { parse } from "smol-toml";
import { MOST_INTERVENTIONS } from "./interventions";
import { marks, pairsOf } from "./network-keys";
import { networkOf } from "./study-network";
import { PROTOCOLS, protocolKey, settingsOf, type Settings } from "./protocols";
import { quantity } from "./quantities";
import { startsOf } from "./study-traffic";
import { integer, refuse, string, table, type Table } from "./study-tables";
import { checked, DEFAULT, MOST_WORLDS, type Scene } from "./scene";

/** Keys without effect on a trial: texts, tables and claims. */
const SILENT = new Set([
  ..."title source description notes show claims reported worlds repeats repeats_in max_repeats precision".split(" "),
]);

export interface Opened {
  scene: Scene;
  /** Differences between the page and a run of the study. */
  notes: string[];
}

/** Returns the scene of a study file's text, with the speed of `present`, or throws with the first key that the page cannot show. */
export function sceneOf(text: string, present: Scene): Opened {
  const study = tables(text);
  const notes: string[] = [];
  const { sweep, seed, path, topology, workload, protocols, traffic, extends: base, ...others } = study;
  if (base !== undefined) refuse("extends", "the page reads one file: copy the keys of the extended study into it");
  for (const key of Object.keys(others)) if (!SILENT.has(key)) refuse(key);
  const swept = table("sweep", sweep ?? {});
  const study_ = { path: table("path", path ?? {}), topology: table("topology", topology ?? {}), workload: table("workload", workload), protocols: entries(protocols) };
  const first = Object.entries(swept).map(([key, values]) => choose(study_, key, values));
  if (first.length > 0) notes.push(`The page shows one cell of the sweep: ${first.join(", ")}.`);
  const network = networkOf(study_.path, topology === undefined ? undefined : study_.topology);
  const scene: Scene = {
    ...DEFAULT,
    speed: present.speed,
    seed: integer("seed", seed ?? 1),
    ...network,
    ...workloadOf(study_.workload, pairsOf({ ...DEFAULT, ...network }) === 1, notes),
    ...protocolsOf(study_.protocols, notes),
  };
  if (traffic !== undefined) {
    const starts = [...scene.interventions, ...startsOf(traffic, scene)];
    scene.interventions = starts.sort((one, other) => one.at - other.at);
    notes.push("The page measures the flows of traffic too.");
  }
  const marked = network.ecn ?? "off";
  if (marks(scene.discipline) && marked !== scene.ecn) refuse("path.queue.ecn", "the explorer shows ECN of hosts and queues together");
  return { scene: checked(scene), notes };
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

function workloadOf(workload: Table, single: boolean, notes: string[]): Partial<Scene> {
  const { kind, size, flows = 1, duration, warm_up, stagger = "0s", ...others } = workload;
  for (const key of Object.keys(others)) refuse(`workload.${key}`);
  if (kind !== "bulk" && kind !== "file") refuse("workload.kind", `the explorer shows "bulk" and "file"`);
  if (warm_up !== undefined) notes.push("The page measures without workload.warm_up.");
  if (duration !== undefined) notes.push("The page runs longer than workload.duration.");
  const count = integer("workload.flows", flows);
  const interval = quantity("delay", string("workload.stagger", stagger));
  const size_ = kind === "file" ? string("workload.size", size) : "";
  if (interval === 0) return { size: size_, flows: count };
  if (!single) refuse("workload.stagger", "the explorer shows it on one path");
  const starts = Array.from({ length: Math.min(count - 1, MOST_INTERVENTIONS + 1) }, (_, flow) => (flow + 1) * interval);
  return { size: size_, flows: 1, interventions: starts.map((at) => ({ at, do: "start-flow", pair: 0, size: "" })) };
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
  if (shown.some(({ label }) => label !== undefined)) notes.push("The page shows its own names instead of labels.");
  const settings: Partial<Settings> = {};
  const worlds = shown.map((entry, place) => worldOf(entry, `protocols[${place + 1}]`, settings));
  return { worlds, ...settings };
}

function worldOf({ name: _, label: __, ...entry }: Table, where: string, settings: Partial<Settings>): string {
  const keyOf = (name: string): Table => protocolKey(name, { ...DEFAULT, ...settingsOf(name, entry) });
  const names = Object.keys(PROTOCOLS);
  const found = names.find((name) => differing(entry, keyOf(name)) === undefined);
  if (found !== undefined) {
    for (const [setting, value] of Object.entries(settingsOf(found, entry))) {
      const before = settings[setting as keyof Settings];
      if (before !== undefined && before !== value) {
        const name = setting === "window" ? "ARQ window" : setting;
        refuse(`protocols.${setting}`, `the page has one ${name}, the study has ${before}, ${value}`);
      }
      Object.assign(settings, { [setting]: value });
    }
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
function choose(study: { path: Table; topology: Table; workload: Table; protocols: Table[] }, key: string, values: unknown): string {
  const value = firstOf(`sweep."${key}"`, values);
  const [root, ...rest] = key.split(".");
  if (root === "path" || root === "topology" || root === "workload") place(study[root], rest, value, key);
  else if (root === "protocol") for (const entry of study.protocols) place(entry, rest, value, key);
  else if (root === "protocols") {
    const [name, ...inner] = rest;
    const entry = study.protocols.find((one) => (one["name"] ?? one["congestion"] ?? one["kind"]) === name);
    if (entry) place(entry, inner, value, key);
  } else refuse(`sweep."${key}"`);
  return `${key} = ${typeof value === "object" ? JSON.stringify(value) : String(value)}`;
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
