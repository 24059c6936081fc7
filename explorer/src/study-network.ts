// The path or topology of a study file as settings of a scene.
import { DEFAULT, type Scene } from "./scene";
import { integer, refuse, string, table, type Table } from "./study-tables";

/** The default queue of a study's path. */
const QUEUE = "1000pkt";

/** Returns the settings of a path, or of a topology that the page shows. */
export function networkOf(path: Table, topology: Table | undefined): Partial<Scene> {
  if (topology === undefined) return pathOf("path", path);
  const { kind, ...keys } = topology;
  const known = (...names: string[]): void => {
    for (const key of Object.keys(keys)) if (!names.includes(key)) refuse(`topology.${key}`);
  };
  if (kind === "dumbbell") {
    known("bottleneck", "access");
    const { access } = keys;
    if (!Array.isArray(access)) return refuse("topology.access", "expected a list with one table for each sender");
    const delays = access.map((entry: unknown, place) => {
      const where = `topology.access[${place + 1}]`;
      const { delay = "0ms", ...others } = table(where, entry);
      for (const key of Object.keys(others)) refuse(`${where}.${key}`);
      return string(`${where}.delay`, delay);
    });
    return { topology: kind, senders: delays.join(", "), ...pathOf("topology.bottleneck", table("topology.bottleneck", keys["bottleneck"])) };
  }
  if (kind === "parking-lot") {
    known("bottleneck", "hops");
    const hops = integer("topology.hops", keys["hops"]);
    return { topology: kind, hops, ...pathOf("topology.bottleneck", table("topology.bottleneck", keys["bottleneck"])) };
  }
  if (kind === "multipath") {
    known("path");
    const paths = keys["path"];
    if (!Array.isArray(paths) || paths.length !== 2) return refuse("topology.path", "the explorer shows two paths, as a list");
    const [first, second] = paths.map((entry: unknown, place) => {
      const where = `topology.path[${place + 1}]`;
      return pathOf(where, table(where, entry));
    }) as [Partial<Scene>, Partial<Scene>];
    for (const key of ["discipline", "burst", "jitter"] as const) {
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

function pathOf(where: string, path: Table): Partial<Scene> {
  const { rate, delay = "0ms", jitter = DEFAULT.jitter, loss = DEFAULT.loss, queue = QUEUE, ...others } = path;
  for (const key of Object.keys(others)) refuse(`${where}.${key}`);
  if (rate === undefined) refuse(`${where}.rate`, "the key is missing: the page shows no unlimited rate");
  return {
    rate: string(`${where}.rate`, rate),
    delay: string(`${where}.delay`, delay),
    jitter: string(`${where}.jitter`, jitter),
    ...lossOf(`${where}.loss`, loss),
    ...queueOf(`${where}.queue`, queue),
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

function queueOf(where: string, queue: unknown): Partial<Scene> {
  if (typeof queue === "string") return /^\s*\d/.test(queue) ? { queue } : { discipline: queue, queue: QUEUE };
  const { kind = "drop-tail", limit = QUEUE, ecn = false, ...others } = table(where, queue);
  for (const key of Object.keys(others)) refuse(`${where}.${key}`);
  return { discipline: string(`${where}.kind`, kind), queue: string(`${where}.limit`, limit), ...(ecn ? { ecn: "on" } : {}) };
}
