// Flows with other protocols on the same network as the measured flows of each configuration: [[traffic]] in a study file.
import { firstHost, pairsOf } from "./network-keys";
import { isProtocol, protocolKey, PROTOCOLS, unknownProtocol } from "./protocols";
import { quantity } from "./quantities";
import type { Scene } from "./scene";

/** Flows with one protocol. Keys that are left out have their default. */
export interface Rival {
  protocol: string;
  /** Name of the traffic; by default that of the protocol. */
  name?: string;
  /** Number of the pair of hosts; by default all pairs. */
  pair?: number;
  /** Number of flows of each pair; by default 1. */
  flows?: number;
  /** Size of each flow; by default unlimited data. */
  size?: string;
  /** Start; by default at once. */
  start?: string;
}

/** Limit of the rivals. */
export const MOST_RIVALS = 3;

const TYPES: Readonly<Record<keyof Rival, string>> = {
  ...{ protocol: "string", name: "string", pair: "number", flows: "number", size: "string", start: "string" },
};
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

/** Throws with the first mistake of the rivals of a scene. */
export function checkRivals(scene: Scene): void {
  const { rivals } = scene;
  if (rivals.length > MOST_RIVALS) throw new Error(`rivals: ${rivals.length} are too many (limit ${MOST_RIVALS})`);
  for (const rival of rivals) {
    if (typeof rival !== "object" || rival === null) throw new Error("rivals: expected a list of objects");
    for (const [key, value] of Object.entries(rival)) {
      if (!Object.hasOwn(TYPES, key)) throw new Error(`rivals: unknown key "${key}" (${Object.keys(TYPES).join(", ")})`);
      if (typeof value !== TYPES[key as keyof Rival]) throw new Error(`rivals: ${key}: expected a ${TYPES[key as keyof Rival]}`);
    }
    const { protocol, name = "rival", pair = 0, flows = 1, size = "", start = "" } = rival;
    if (!isProtocol(protocol)) throw new Error(`rivals: ${unknownProtocol(protocol)}`);
    if (!NAME.test(name)) throw new Error(`rivals: name: "${name}" is not a name (letters, digits, - and _)`);
    if (!Number.isInteger(pair) || pair < 0 || pair >= pairsOf(scene)) throw new Error(`rivals: pair: ${pair} is out of range (0 to ${pairsOf(scene) - 1})`);
    if (!Number.isInteger(flows) || flows < 1 || flows > 64) throw new Error(`rivals: flows: ${flows} is out of range (1 to 64)`);
    if (size) quantity("size", size);
    if (start) quantity("delay", start);
  }
  const names = namesOf(rivals);
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new Error(`rivals: name: two are named "${twice}"`);
}

/** Returns a scene whose flows have hosts: those whose pair does not exist, or is the only one, are on all pairs. */
export function fitted(scene: Scene): Scene {
  const pairs = pairsOf(scene);
  const isPair = (pair: number): boolean => pairs > 1 && pair < pairs;
  const rivals = scene.rivals.map(({ pair, ...rival }) => (pair !== undefined && isPair(pair) ? { ...rival, pair } : rival));
  return { ...scene, pair: isPair(scene.pair) ? scene.pair : -1, rivals };
}

/** Returns the names of the rivals. Those of the same protocol are numbered. */
export function namesOf(rivals: readonly Rival[]): string[] {
  return rivals.map(({ name, protocol }, place) => {
    const before = rivals.slice(0, place).filter((other) => other.protocol === protocol).length;
    return name ?? (before === 0 ? protocol : `${protocol}-${before + 1}`);
  });
}

/** Returns the keys of a workload for the hosts of a pair; none for all pairs. */
export function hostKeys(scene: Scene, pair: number | undefined): Record<string, unknown> {
  if (pair === undefined || pair < 0 || pairsOf(scene) === 1) return {};
  const number = pair + firstHost(scene);
  return { from: `s${number}`, to: `r${number}` };
}

/** Returns the traffic of the rivals, as in a study file. */
export function rivalKeys(scene: Scene): Record<string, unknown>[] {
  const names = namesOf(scene.rivals);
  return scene.rivals.map((rival, place) => {
    const { protocol, pair, flows = 1, size, start } = rival;
    const data = size ? { kind: "file", size } : { kind: "bulk" };
    const counted = flows > 1 ? { flows } : {};
    const workload = { ...data, ...counted, ...(start ? { start } : {}), ...hostKeys(scene, pair) };
    return { name: names[place]!, protocol: protocolKey(protocol, scene), workload };
  });
}

/** Returns the label of a protocol with those beside it. */
export function labelWith(name: string, rivals: readonly Rival[]): string {
  const labels = [...new Set(rivals.map(({ protocol }) => PROTOCOLS[protocol]!.label))];
  const last = labels.pop();
  if (last === undefined) return PROTOCOLS[name]!.label;
  return `${PROTOCOLS[name]!.label} beside ${labels.length > 0 ? `${labels.join(", ")} and ` : ""}${last}`;
}
