// A study file as a scene: the reverse of the export. The page leaves out what it cannot show, and names it; what it cannot leave out
// is an error.
import { parse } from "smol-toml";
import { MOST_INTERVENTIONS } from "./interventions";
import { hasMarkingKey, pairOf, pairsOf } from "./network-keys";
import { networkOf } from "./study-network";
import { quantity } from "./quantities";
import { protocolTable, StudyProtocols } from "./study-protocols";
import { trafficOf, trafficTables } from "./study-traffic";
import { integer, Omissions, refuse, string, table, type Table } from "./study-tables";
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

/** Returns the scene of a study file's text, with the speed of `present`, or throws with the first key without which there is none. */
export function sceneOf(text: string, present: Scene): Opened {
  const study = tables(text);
  const notes: string[] = [];
  const { sweep, seed, path, topology, workload, protocols, traffic, extends: base, ...others } = study;
  if (base !== undefined) refuse("extends", "the page reads one file: copy the keys of the extended study into it");
  const left = new Omissions();
  left.add(...Object.keys(others).filter((key) => !SILENT.has(key)));
  const swept = table("sweep", sweep ?? {});
  const study_ = {
    ...{ path: table("path", path ?? {}), topology: table("topology", topology ?? {}), workload: table("workload", workload) },
    ...{ protocols: protocolTables(protocols), traffic: trafficTables(traffic) },
  };
  const first = Object.entries(swept).flatMap(([key, values]) => left.unless(() => choose(study_, key, values)));
  if (first.length > 0) notes.push(`The page shows one cell of the sweep: ${first.join(", ")}.`);
  const network = networkOf(study_.path, topology === undefined ? undefined : study_.topology, left);
  const found = new StudyProtocols();
  const before: Scene = {
    ...DEFAULT,
    speed: present.speed,
    seed: integer("seed", seed ?? 1),
    ...network,
    ...workloadOf(study_.workload, { ...DEFAULT, ...network }, notes, left),
    worlds: worldsOf(study_.protocols, found, notes, left),
  };
  const { starts, rivals } = trafficOf(study_.traffic, before, found, left);
  const interventions = [...before.interventions, ...starts].sort((one, other) => one.at - other.at);
  if (starts.length > 0) notes.push("The page measures the flows of traffic too.");
  const scene: Scene = { ...before, rivals, interventions, ...found.settings };
  if (found.settings.ecn === "on" && hasMarkingKey(scene.discipline) && network.ecn !== "on") scene.ecn = "hosts";
  found.check(scene);
  return { scene: checked(scene), notes: [...notes, ...left.notes] };
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

function workloadOf(workload: Table, network: Scene, notes: string[], left: Omissions): Partial<Scene> {
  const { kind, size, flows = 1, duration, warm_up, stagger = "0s", start_jitter, from, to, ...others } = workload;
  left.add(...Object.keys(others).map((key) => `workload.${key}`));
  if (kind !== "bulk" && kind !== "file") refuse("workload.kind", `the explorer shows "bulk" and "file"`);
  if (warm_up !== undefined) notes.push("The page measures without workload.warm_up.");
  if (duration !== undefined) notes.push("The page runs longer than workload.duration.");
  const count = integer("workload.flows", flows);
  const interval = quantity("delay", string("workload.stagger", stagger));
  const size_ = kind === "file" ? string("workload.size", size) : "";
  const pair = pairOf(network, from, to) ?? refuse("workload.from", "the explorer shows flows of one sender to its receiver, or of all");
  const startJitter = start_jitter === undefined ? "" : string("workload.start_jitter", start_jitter);
  if (interval === 0) return { size: size_, flows: count, pair, startJitter };
  if (startJitter) refuse("workload.start_jitter", "the explorer shows it without stagger");
  if (pairsOf(network) > 1) refuse("workload.stagger", "the explorer shows it on one path");
  const starts = Array.from({ length: Math.min(count - 1, MOST_INTERVENTIONS + 1) }, (_, flow) => (flow + 1) * interval);
  return { size: size_, flows: 1, interventions: starts.map((at) => ({ at, do: "start-flow", pair: 0, size: "" })) };
}

function protocolTables(protocols: unknown): Table[] {
  if (!Array.isArray(protocols) || protocols.length === 0) refuse("protocols", "expected a list");
  return protocols.map((entry: unknown, place) => protocolTable(`protocols[${place + 1}]`, entry));
}

function worldsOf(protocols: Table[], found: StudyProtocols, notes: string[], left: Omissions): string[] {
  const all = protocols.map((entry, place) => ({ entry, where: `protocols[${place + 1}]` }));
  const shown: string[] = [];
  let tried = 0;
  for (const { entry, where } of all) {
    if (shown.length === MOST_WORLDS) break;
    shown.push(...left.unless(() => found.add(where, entry)));
    tried += 1;
  }
  if (shown.length === 0) throw new Error(left.reason);
  if (tried < all.length) notes.push(`The page shows the first ${MOST_WORLDS} of ${all.length} protocols.`);
  if (protocols.slice(0, tried).some(({ label }) => label !== undefined)) notes.push("The page shows its own names instead of labels.");
  return shown;
}

/** Sets a swept key to its first value, and returns both as text. */
function choose(study: { path: Table; topology: Table; workload: Table; protocols: Table[]; traffic: Table[] }, key: string, values: unknown): string {
  const value = firstOf(`sweep."${key}"`, values);
  const [root, ...rest] = key.split(".");
  if (root === "path" || root === "topology" || root === "workload") place(study[root], rest, value, key);
  else if (root === "protocol") for (const entry of study.protocols) place(entry, rest, value, key);
  else if (root === "protocols") {
    const [name, ...inner] = rest;
    const entry = study.protocols.find((one) => (one["name"] ?? one["congestion"] ?? one["kind"]) === name);
    if (entry) place(entry, inner, value, key);
  } else if (root === "traffic") {
    const entry = study.traffic.find((one) => one["name"] === rest[0]);
    if (!entry) refuse(`sweep."${key}"`);
    place(entry, rest.slice(1), value, key);
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
