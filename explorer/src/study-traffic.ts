// The [[traffic]] of a study file as flows that start while a scene runs: the reverse of the export.
import type { Intervention } from "./interventions";
import { pairsOf } from "./network-keys";
import { protocolKey } from "./protocols";
import { quantity } from "./quantities";
import type { Scene } from "./scene";
import { firstHost } from "./study-interventions";
import { refuse, string, table } from "./study-tables";

/** Returns the starts of the flows of traffic, in order of time. */
export function startsOf(traffic: unknown, scene: Scene): Intervention[] {
  if (!Array.isArray(traffic)) return refuse("traffic", "expected a list");
  if (scene.worlds.length > 1) refuse("traffic", "the explorer shows it with one protocol");
  return traffic.map((entry, place) => startOf(`traffic[${place + 1}]`, entry, scene)).sort((one, other) => one.at - other.at);
}

function startOf(where: string, entry: unknown, scene: Scene): Intervention {
  const { name: _, protocol, workload, ...others } = table(where, entry);
  for (const key of Object.keys(others)) refuse(`${where}.${key}`);
  const { name: __, ...own } = table(`${where}.protocol`, protocol);
  const measured = protocolKey(scene.worlds[0]!, scene);
  const differs = [...Object.keys(own), ...Object.keys(measured)].find((key) => own[key] !== measured[key]);
  if (differs !== undefined) refuse(`${where}.protocol.${differs}`, "the explorer shows traffic of the measured protocol");
  const { kind, size, start = "0s", from, to, ...rest } = table(`${where}.workload`, workload);
  for (const key of Object.keys(rest)) refuse(`${where}.workload.${key}`);
  if (kind !== "bulk" && kind !== "file") refuse(`${where}.workload.kind`, `the explorer shows "bulk" and "file"`);
  if (kind === "bulk" && scene.size) refuse(`${where}.workload.kind`, "the explorer shows unlimited data next to unlimited data");
  const pair = pairOf(where, from, to, scene);
  const at = quantity("delay", string(`${where}.workload.start`, start));
  return { at, do: "start-flow", pair, size: kind === "file" ? string(`${where}.workload.size`, size) : "" };
}

function pairOf(where: string, from: unknown, to: unknown, scene: Scene): number {
  const pairs = pairsOf(scene);
  if (pairs === 1 && from === undefined && to === undefined) return 0;
  const first = firstHost(scene);
  const found = Array.from({ length: pairs }, (_, pair) => pair).find((pair) => from === `s${pair + first}` && to === `r${pair + first}`);
  return found ?? refuse(`${where}.workload.from`, "the explorer shows traffic of one sender to its receiver");
}
