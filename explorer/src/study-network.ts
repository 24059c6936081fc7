// The path or topology of a study file as settings of a scene.
import { hasTarget } from "./network-keys";
import { DEFAULT, DISCIPLINES, type Scene } from "./scene";
import { integer, refuse, string, table, type Omissions, type Table } from "./study-tables";

/** The default queue of a study's path, and the default limits of disciplines with another one. */
const QUEUE = "1000pkt";
const LIMITS: Readonly<Record<string, string>> = { "fq-codel": "10240pkt", dualpi2: "10000pkt", cake: "4MiB" };

/** Returns the settings of a path, or of a topology that the page shows. */
export function networkOf(path: Table, topology: Table | undefined, left: Omissions): Partial<Scene> {
  if (topology === undefined) return pathOf("path", path, left);
  const { kind, ...keys } = topology;
  const known = (...names: string[]): void => {
    left.add(...Object.keys(keys).filter((key) => !names.includes(key)).map((key) => `topology.${key}`));
  };
  const bottleneck = (): Partial<Scene> => pathOf("topology.bottleneck", table("topology.bottleneck", keys["bottleneck"]), left);
  if (kind === "dumbbell") {
    known("bottleneck", "access", "pairs");
    return { topology: kind, ...accessOf(keys["access"], keys["pairs"], left), ...bottleneck() };
  }
  if (kind === "parking-lot") {
    known("bottleneck", "hops");
    const hops = integer("topology.hops", keys["hops"]);
    return { topology: kind, hops, ...bottleneck() };
  }
  if (kind === "multipath") {
    known("path");
    const paths = keys["path"];
    if (!Array.isArray(paths) || paths.length !== 2) return refuse("topology.path", "the explorer shows two paths, as a list");
    const [first, second] = paths.map((entry: unknown, place) => {
      const where = `topology.path[${place + 1}]`;
      return pathOf(where, table(where, entry), left);
    }) as [Partial<Scene>, Partial<Scene>];
    for (const key of ["discipline", "target", "burst", "jitter"] as const) {
      const value = second[key] ?? DEFAULT[key];
      const lossless = key === "burst" && (second.loss ?? DEFAULT.loss) === DEFAULT.loss;
      const expected = key === "jitter" ? DEFAULT.jitter : (first[key] ?? DEFAULT[key]);
      if (value !== expected && !lossless) refuse(`topology.path[2].${key}`, `the explorer shows the value ${expected} there`);
    }
    const { rate, delay, loss = DEFAULT.loss, queue = QUEUE } = second;
    return { topology: "two-paths", ...first, rate2: rate!, delay2: delay!, loss2: loss, queue2: queue };
  }
  return refuse("topology.kind", `the explorer shows "dumbbell", "parking-lot" and "multipath"`);
}

/** The access links of a dumbbell: a list with one table for each sender, or one table for all pairs. */
function accessOf(access: unknown, pairs: unknown, left: Omissions): Partial<Scene> {
  const isList = Array.isArray(access);
  const entries: unknown[] = isList ? access : Array.from({ length: integer("topology.pairs", pairs) }, () => access ?? {});
  const found = entries.map((entry, place) => {
    const where = `topology.access${isList ? `[${place + 1}]` : ""}`;
    const { delay = "0ms", rate = "", ...others } = table(where, entry);
    left.add(...Object.keys(others).map((key) => `${where}.${key}`));
    return { where, rate: string(`${where}.rate`, rate), delay: string(`${where}.delay`, delay) };
  });
  const accessRate = found[0]?.rate ?? "";
  for (const { where, rate } of found) if (rate !== accessRate) refuse(`${where}.rate`, "the explorer shows one rate of all access links");
  return { senders: found.map(({ delay }) => delay).join(", "), accessRate };
}

function pathOf(where: string, path: Table, left: Omissions): Partial<Scene> {
  const { rate, delay = "0ms", jitter = DEFAULT.jitter, loss = DEFAULT.loss, queue = QUEUE, ...others } = path;
  left.add(...Object.keys(others).map((key) => `${where}.${key}`));
  if (rate === undefined) refuse(`${where}.rate`, "the key is missing: the page shows no unlimited rate");
  return {
    rate: string(`${where}.rate`, rate),
    delay: string(`${where}.delay`, delay),
    jitter: string(`${where}.jitter`, jitter),
    ...lossOf(`${where}.loss`, loss),
    ...queueOf(`${where}.queue`, queue, left),
  };
}

/** A loss in bursts has the mean and the length that the page shows. */
function lossOf(where: string, loss: unknown): Partial<Scene> {
  if (typeof loss === "string") return { loss };
  const { kind, enter_bad, leave_bad, ...others } = table(where, loss);
  if (kind !== "gilbert-elliott") refuse(`${where}.kind`);
  for (const key of Object.keys(others)) refuse(`${where}.${key}`);
  const share = (key: string, value: unknown): number => parseFloat(string(`${where}.${key}`, value)) / 100;
  const [enter, leave] = [share("enter_bad", enter_bad), share("leave_bad", leave_bad)];
  const round = (value: number): number => Number(value.toPrecision(6));
  return { loss: `${round((100 * enter) / (enter + leave))}%`, burst: round(1 / leave) };
}

function queueOf(where: string, queue: unknown, left: Omissions): Partial<Scene> {
  if (typeof queue === "string") return DISCIPLINES.includes(queue) ? { discipline: queue, queue: LIMITS[queue] ?? QUEUE } : { queue };
  const { kind = "drop-tail", limit, ecn = false, target, ...others } = table(where, queue);
  const discipline = string(`${where}.kind`, kind);
  left.add(...Object.keys(others).map((key) => `${where}.${key}`));
  if (target !== undefined && !hasTarget(discipline)) refuse(`${where}.target`);
  return {
    discipline,
    queue: limit === undefined ? (LIMITS[discipline] ?? QUEUE) : string(`${where}.limit`, limit),
    ...(target === undefined ? {} : { target: string(`${where}.target`, target) }),
    ...(ecn ? { ecn: "on" } : {}),
  };
}
