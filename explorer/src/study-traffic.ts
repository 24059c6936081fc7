// The [[traffic]] of a study file: flows that start while a scene runs, which the page exports, and rivals.
import type { Intervention } from "./interventions";
import { pairOf } from "./network-keys";
import { protocolKey } from "./protocols";
import { quantity } from "./quantities";
import { namesOf, type Rival } from "./rivals";
import type { Scene } from "./scene";
import { equal, protocolTable, type StudyProtocols } from "./study-protocols";
import { integer, refuse, string, table, type Omissions, type Table } from "./study-tables";

/** Names of the flows that a study file of the page starts. */
const STARTED = /^flow-\d+$/;

interface Traffic {
  starts: Intervention[];
  rivals: Rival[];
}

/** Returns the entries of traffic as tables. */
export function trafficTables(traffic: unknown): Table[] {
  if (!Array.isArray(traffic)) return traffic === undefined ? [] : refuse("traffic", "expected a list");
  return traffic.map((entry: unknown, place) => {
    const where = `traffic[${place + 1}]`;
    const { protocol, workload, ...others } = table(where, entry);
    if (protocol === undefined) refuse(`${where}.protocol`, "the key is missing");
    return { ...others, protocol: protocolTable(`${where}.protocol`, protocol), workload: { ...table(`${where}.workload`, workload) } };
  });
}

/** Returns the flows of traffic. `protocols` are those of the study, whose measured ones are known. */
export function trafficOf(traffic: readonly Table[], scene: Scene, protocols: StudyProtocols, left: Omissions): Traffic {
  const found: Traffic = { starts: [], rivals: [] };
  traffic.forEach((entry, place) => {
    const where = `traffic[${place + 1}]`;
    const start = startOf(entry, scene, protocols);
    if (start) found.starts.push(start);
    else found.rivals.push(...left.unless(() => rivalOf(where, entry, scene, protocols)));
  });
  // Names that the page gives anyway are not part of a scene.
  const shown = namesOf(found.rivals.map(({ name: _, ...rival }) => rival));
  found.rivals = found.rivals.map(({ name, ...rival }, place) => (name === shown[place] ? rival : { ...rival, name: name! }));
  return found;
}

/** Returns an exported flow of the measured protocol, if the entry is one. */
function startOf({ name, protocol, workload }: Table, scene: Scene, protocols: StudyProtocols): Intervention | undefined {
  const { name: _, ...own } = protocol as Table;
  const measured = protocolKey(scene.worlds[0]!, { ...scene, ...protocols.settings });
  const same = scene.worlds.length === 1 && Object.keys({ ...own, ...measured }).every((key) => equal(own[key], measured[key]));
  const { kind, size, start = "0s", from, to, ...rest } = workload as Table;
  const isData = kind === "file" ? typeof size === "string" : kind === "bulk" && !scene.size;
  const pair = pairOf(scene, from, to) ?? (from === undefined && to === undefined && scene.pair === 0 ? 0 : undefined);
  if (!STARTED.test(String(name)) || !same || !isData || Object.keys(rest).length > 0 || pair === undefined || pair < 0) return undefined;
  return { at: quantity("delay", String(start)), do: "start-flow", pair, size: kind === "file" ? String(size) : "" };
}

function rivalOf(where: string, entry: Table, scene: Scene, protocols: StudyProtocols): Rival {
  const { name, protocol, workload, ...others } = entry;
  for (const key of Object.keys(others)) refuse(`${where}.${key}`);
  const rival: Rival = { protocol: protocols.add(`${where}.protocol`, protocol as Table), name: string(`${where}.name`, name) };
  const { kind, size, flows, start, from, to, ...rest } = workload as Table;
  for (const key of Object.keys(rest)) refuse(`${where}.workload.${key}`);
  if (kind !== "bulk" && kind !== "file") refuse(`${where}.workload.kind`, `the explorer shows "bulk" and "file"`);
  const pair = pairOf(scene, from, to) ?? refuse(`${where}.workload.from`, "the explorer shows traffic of one sender to its receiver");
  if (pair >= 0) rival.pair = pair;
  if (flows !== undefined && flows !== 1) rival.flows = integer(`${where}.workload.flows`, flows);
  if (kind === "file") rival.size = string(`${where}.workload.size`, size);
  if (start !== undefined) rival.start = string(`${where}.workload.start`, start);
  return rival;
}
