// A scene: everything that a link to the page contains.
import type { Spec } from "./engine";
import { LESSONS } from "./lessons";
import { PROTOCOLS, protocolKey } from "./protocols";

export interface Scene {
  rate: string;
  delay: string;
  loss: string;
  queue: string;
  discipline: string;
  jitter: string;
  flows: number;
  window: number;
  seed: number;
  speed: number;
  /** Size of a file; empty for unlimited data. */
  size: string;
  worlds: string[];
  /** Number of the lesson, or 0. */
  lesson: number;
}

export const DEFAULT: Scene = {
  rate: "10Mbit/s",
  delay: "20ms",
  loss: "0%",
  queue: "50pkt",
  discipline: "drop-tail",
  jitter: "0ms",
  flows: 1,
  window: 32,
  seed: 1,
  speed: 0.1,
  size: "",
  worlds: ["reno", "cubic"],
  lesson: 0,
};

/** Queue disciplines of the page. */
export const DISCIPLINES = ["drop-tail", "red", "codel", "fq-codel", "pie"];

/** Longest run in virtual seconds. */
export const LONGEST_S = 600;
const RATE_LIMIT = 1e9;
/** Limit of the configurations. */
export const MOST_WORLDS = 3;

const UNITS: Readonly<Record<string, number>> = {
  "bit/s": 1,
  "kbit/s": 1e3,
  "Mbit/s": 1e6,
  "Gbit/s": 1e9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  "%": 0.01,
  pkt: 1,
  B: 1,
  kB: 1e3,
  KiB: 1024,
  MB: 1e6,
};

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  rate: ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"],
  delay: ["us", "ms", "s"],
  jitter: ["us", "ms", "s"],
  loss: ["%"],
  queue: ["pkt", "B", "kB", "KiB", "MB"],
  size: ["B", "kB", "MB"],
};

/** Returns a quantity in its base unit, or throws with the allowed units. */
export function quantity(key: string, text: string): number {
  const [, digits, unit] = /^\s*([\d.]+)\s*([A-Za-z%/]+)\s*$/.exec(text) ?? [];
  const units = ALLOWED[key] ?? [];
  if (!digits || !unit || !units.includes(unit) || Number.isNaN(Number(digits))) {
    throw new Error(`${key}: "${text}" is not a number with a unit (${units.join(", ")})`);
  }
  return Number(digits) * UNITS[unit]!;
}

function checkRange(key: string, value: number, low: number, high: number, unit = ""): void {
  if (!(value >= low && value <= high)) throw new Error(`${key}: ${value} is out of range (${low} to ${high}${unit})`);
}

/** Returns the scene if it is valid, or throws with the first mistake. */
export function checked(scene: Scene): Scene {
  checkRange("rate", quantity("rate", scene.rate), 1e3, RATE_LIMIT, " bit/s; the page simulates no faster links");
  checkRange("delay", quantity("delay", scene.delay), 0, 10, " s");
  checkRange("loss", quantity("loss", scene.loss), 0, 1);
  checkRange("jitter", quantity("jitter", scene.jitter), 0, quantity("delay", scene.delay), " s, the delay");
  quantity("queue", scene.queue);
  if (!DISCIPLINES.includes(scene.discipline)) {
    throw new Error(`discipline: unknown queue discipline "${scene.discipline}" (${DISCIPLINES.join(", ")})`);
  }
  if (scene.size) checkRange("size", quantity("size", scene.size), 1, 1e9, " B");
  checkRange("flows", scene.flows, 1, 64);
  checkRange("window", scene.window, 1, 4096);
  checkRange("seed", scene.seed, 0, 2 ** 32);
  checkRange("speed", scene.speed, 0.001, 100);
  checkRange("configurations", scene.worlds.length, 1, MOST_WORLDS);
  for (const count of [scene.flows, scene.window, scene.seed]) {
    if (!Number.isInteger(count)) throw new Error(`${count}: not an integer`);
  }
  for (const name of scene.worlds) {
    if (!Object.hasOwn(PROTOCOLS, name)) throw new Error(`${name}: unknown protocol (${Object.keys(PROTOCOLS).join(", ")})`);
  }
  return scene;
}

/** Returns the scene of a URL's fragment: empty, `#lesson=N`, or JSON with the keys that differ from the default. */
export function fromHash(hash: string): Scene {
  const text = decodeURIComponent(hash.replace(/^#/, ""));
  if (!text) return { ...DEFAULT };
  const lesson = /^lesson=(\d+)$/.exec(text);
  if (lesson) {
    const found = LESSONS[Number(lesson[1]) - 1];
    if (!found) throw new Error(`lesson ${lesson[1]}: no such lesson (1 to ${LESSONS.length})`);
    return { ...DEFAULT, ...found.scene, lesson: Number(lesson[1]) };
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("the address contains no scene: it is incomplete or was changed");
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new Error("the address contains no scene: expected an object");
  }
  for (const [key, value] of Object.entries(content)) {
    if (!Object.hasOwn(DEFAULT, key)) throw new Error(`${key}: unknown key (${Object.keys(DEFAULT).join(", ")})`);
    const expected = DEFAULT[key as keyof Scene];
    if (typeof value !== typeof expected || Array.isArray(value) !== Array.isArray(expected)) {
      throw new Error(`${key}: expected ${Array.isArray(expected) ? "a list" : `a ${typeof expected}`}`);
    }
  }
  return checked({ ...DEFAULT, ...(content as Partial<Scene>) });
}

/** Returns the fragment of a scene. */
export function toHash(scene: Scene): string {
  const entries = Object.entries(scene).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULT[key as keyof Scene]),
  );
  return `#${encodeURIComponent(JSON.stringify(Object.fromEntries(entries)))}`;
}

/** Returns the key of the queue, as in a study file. */
export function queueKey({ discipline, queue }: Scene): unknown {
  return discipline === "drop-tail" ? queue : { kind: discipline, limit: queue };
}

/** Returns the keys of the path, as in a study file. */
export function pathKeys(scene: Scene): Record<string, unknown> {
  const keys: Record<string, unknown> = { rate: scene.rate, delay: scene.delay, queue: queueKey(scene) };
  if (quantity("loss", scene.loss) > 0) keys["loss"] = scene.loss;
  if (quantity("jitter", scene.jitter) > 0) keys["jitter"] = scene.jitter;
  return keys;
}

/** Returns the keys of the workload, as in a study file. */
export function workloadKeys(scene: Scene): Record<string, unknown> {
  const kind = scene.size ? { kind: "file", size: scene.size } : { kind: "bulk", duration: `${LONGEST_S}s` };
  return scene.flows > 1 ? { ...kind, flows: scene.flows } : kind;
}

/** Returns the specification of one world. */
export function specOf(scene: Scene, name: string): Spec {
  return {
    path: pathKeys(scene),
    protocol: protocolKey(name, scene.window),
    workload: workloadKeys(scene),
    seed: scene.seed,
    trial: 0,
  };
}
