// A scene: everything that a link to the page contains.
import type { Spec } from "./engine";
import { checkedInterventions, type Intervention } from "./interventions";
import { LESSONS } from "./lessons";
import { after, changesSettings } from "./live-settings";
import { networkKeys, pairsOf } from "./network-keys";
import { canChange, isProtocol, POLICIES, COUPLINGS, protocolKey, unknownProtocol } from "./protocols";
import { quantity } from "./quantities";
import { checkRivals, hostKeys, rivalKeys, type Rival } from "./rivals";
import { NAMED } from "./scenes";

export interface Scene {
  rate: string;
  delay: string;
  loss: string;
  /** Mean number of consecutive losses; 1 for independent losses. */
  burst: number;
  queue: string;
  discipline: string;
  /** Target delay of the discipline; empty for its default. */
  target: string;
  /** Whether hosts and queues use ECN: "on", "hosts" (queues drop) or "off". */
  ecn: string;
  jitter: string;
  topology: string;
  /** Access delays of the senders of a dumbbell, separated by commas. */
  senders: string;
  /** Rate of these links; empty for unlimited. */
  accessRate: string;
  /** Number of bottlenecks of a parking lot. */
  hops: number;
  /** The second path. */
  rate2: string;
  delay2: string;
  loss2: string;
  queue2: string;
  flows: number;
  /** The pair of hosts of the measured flows, or -1 for all. */
  pair: number;
  /** Largest random delay of the starts of the measured flows; empty for none. */
  startJitter: string;
  window: number;
  /** Retransmission timeout of ARQ, and limits of TCP; empty for the protocol's default. */
  rto: string;
  minRto: string;
  delayedAck: string;
  ackDelay: string;
  /** Packets per ACK of ARQ. */
  ackEvery: number;
  /** Initial window in packets, or 0 for the default. */
  initialWindow: number;
  /** Path policy and congestion controller of multipath TCP. */
  policy: string;
  coupling: string;
  seed: number;
  speed: number;
  /** Size of a file; empty for unlimited data. */
  size: string;
  worlds: string[];
  /** Flows with other protocols beside those of each configuration. */
  rivals: Rival[];
  interventions: Intervention[];
  /** Number of the lesson, or 0. */
  lesson: number;
  /** Name of another scene of the page; empty for none. */
  named: string;
}

export const DEFAULT: Scene = {
  rate: "10Mbit/s",
  delay: "20ms",
  loss: "0%",
  burst: 1,
  queue: "50pkt",
  discipline: "drop-tail",
  target: "",
  ecn: "off",
  jitter: "0ms",
  topology: "path",
  senders: "5ms, 40ms",
  accessRate: "",
  hops: 2,
  rate2: "5Mbit/s",
  delay2: "40ms",
  loss2: "0%",
  queue2: "50pkt",
  flows: 1,
  pair: -1,
  startJitter: "",
  window: 32,
  rto: "",
  minRto: "",
  delayedAck: "",
  ackDelay: "",
  ackEvery: 1,
  initialWindow: 0,
  policy: "all",
  coupling: "lia",
  seed: 1,
  speed: 0.1,
  size: "",
  worlds: ["reno", "cubic"],
  rivals: [],
  interventions: [],
  lesson: 0,
  named: "",
};

/** Queue disciplines of the page. */
export const DISCIPLINES = ["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie", "pi2", "dualpi2", "step", "cake"];
/** Disciplines that the page does not show, with the reason. */
const HIDDEN: Readonly<Record<string, string>> = { prio: "the flows of the page have no priorities" };

/** Topologies of the page. */
export const TOPOLOGIES = ["path", "two-paths", "dumbbell", "parking-lot"];

/** Longest run in virtual seconds. */
export const LONGEST_S = 600;
const RATE_LIMIT = 1e9;
/** Limit of the configurations. */
export const MOST_WORLDS = 3;

function checkRange(key: string, value: number, low: number, high: number, unit = ""): void {
  if (!(value >= low && value <= high)) throw new Error(`${key}: ${value} is out of range (${low} to ${high}${unit})`);
}

function checkName(key: string, name: string, names: readonly string[]): void {
  if (!names.includes(name)) throw new Error(`${key}: unknown ${key} "${name}" (${names.join(", ")})`);
}

function checkCount(key: string, value: number, low: number, high: number): void {
  checkRange(key, value, low, high);
  if (!Number.isInteger(value)) throw new Error(`${key}: ${value}: not an integer`);
}

/** Returns the scene if it is valid with all of its interventions, or throws with the first mistake. */
export function checked(scene: Scene): Scene {
  checkSettings(scene);
  let settings = scene;
  for (const intervention of checkedInterventions(scene.interventions)) {
    if (intervention.do === "change-protocol") {
      const { world, name } = intervention;
      const before = settings.worlds[world];
      if (before === undefined) throw new Error(`interventions: there is no configuration ${world + 1}`);
      if (!isProtocol(name) || !canChange(before, name)) {
        throw new Error(`interventions: "${before}" cannot change to "${name}" while it runs: only TCP controllers and MPTCP schedulers can`);
      }
    }
    if (!changesSettings(intervention)) continue;
    settings = after(settings, intervention);
    checkSettings(settings);
  }
  return scene;
}

function checkSettings(scene: Scene): void {
  const { rate, delay, loss, jitter, queue, rate2, delay2, loss2, queue2 } = scene;
  for (const path of [
    { rate, delay, loss, queue },
    { rate: rate2, delay: delay2, loss: loss2, queue: queue2 },
  ]) {
    checkRange("rate", quantity("rate", path.rate), 1e3, RATE_LIMIT, " bit/s; the page simulates no faster links");
    checkRange("delay", quantity("delay", path.delay), 0, 10, " s");
    checkRange("loss", quantity("loss", path.loss), 0, 1);
    quantity("queue", path.queue);
  }
  checkRange("jitter", quantity("jitter", jitter), 0, quantity("delay", delay), " s, the delay");
  checkRange("burst", scene.burst, 1, 1000, " packets");
  const reason = Object.hasOwn(HIDDEN, scene.discipline) ? HIDDEN[scene.discipline] : undefined;
  if (reason !== undefined) throw new Error(`discipline: "${scene.discipline}" is not shown: ${reason} (${DISCIPLINES.join(", ")})`);
  if (!DISCIPLINES.includes(scene.discipline)) {
    throw new Error(`discipline: unknown queue discipline "${scene.discipline}" (${DISCIPLINES.join(", ")})`);
  }
  checkName("ecn", scene.ecn, ["off", "on", "hosts"]);
  checkName("topology", scene.topology, TOPOLOGIES);
  const senders = scene.senders.split(",");
  checkRange("senders", senders.length, 1, 8);
  for (const one of senders) checkRange("senders", quantity("delay", one), 0, 10, " s");
  if (scene.accessRate) checkRange("accessRate", quantity("rate", scene.accessRate), 1e3, RATE_LIMIT, " bit/s");
  checkCount("hops", scene.hops, 1, 5);
  if (scene.size) checkRange("size", quantity("size", scene.size), 1, 1e9, " B");
  for (const key of ["rto", "minRto", "delayedAck", "ackDelay", "target", "startJitter"] as const) {
    if (scene[key]) checkRange(key, quantity(key, scene[key]), 0, 60, " s");
  }
  checkCount("initialWindow", scene.initialWindow, 0, 10_000);
  checkCount("flows", scene.flows, 1, 64);
  checkCount("pair", scene.pair, -1, pairsOf(scene) - 1);
  checkRivals(scene);
  checkCount("window", scene.window, 1, 4096);
  checkCount("ackEvery", scene.ackEvery, 1, 1000);
  checkCount("seed", scene.seed, 0, 2 ** 32);
  checkRange("speed", scene.speed, 0.001, 100);
  checkName("policy", scene.policy, POLICIES);
  checkName("coupling", scene.coupling, COUPLINGS);
  checkRange("configurations", scene.worlds.length, 1, MOST_WORLDS);
  for (const name of scene.worlds) {
    if (!isProtocol(name)) throw new Error(unknownProtocol(name));
  }
}

/**
 * Returns the scene of a URL's fragment: empty, `#lesson=N`, `#scene=NAME`, or JSON with the keys that differ from the default.
 * `leave` receives a sentence with the unknown keys, which are left out; without it they are an error.
 */
export function fromHash(hash: string, leave?: (text: string) => void): Scene {
  const text = decodeURIComponent(hash.replace(/^#/, ""));
  if (!text) return { ...DEFAULT };
  const lesson = /^lesson=(\d+)$/.exec(text);
  if (lesson) {
    const found = LESSONS[Number(lesson[1]) - 1];
    if (!found) throw new Error(`lesson ${lesson[1]}: no such lesson (1 to ${LESSONS.length})`);
    return { ...DEFAULT, ...found.scene, lesson: Number(lesson[1]) };
  }
  const named = /^scene=(.+)$/.exec(text)?.[1];
  if (named !== undefined) {
    const found = NAMED[named];
    if (!found) throw new Error(`scene=${named}: no such scene (${Object.keys(NAMED).join(", ")})`);
    return checked({ ...DEFAULT, ...found.scene, named });
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
  const known = Object.entries(content).filter(([key]) => Object.hasOwn(DEFAULT, key));
  const unknown = Object.keys(content).filter((key) => !Object.hasOwn(DEFAULT, key));
  if (unknown.length > 0) {
    const text = `${unknown.join(", ")}: unknown key${unknown.length > 1 ? "s" : ""} (${Object.keys(DEFAULT).join(", ")})`;
    if (!leave) throw new Error(text);
    leave(`The page shows the scene of this address without ${text}.`);
  }
  for (const [key, value] of known) {
    const expected = DEFAULT[key as keyof Scene];
    if (typeof value !== typeof expected || Array.isArray(value) !== Array.isArray(expected)) {
      throw new Error(`${key}: expected ${Array.isArray(expected) ? "a list" : `a ${typeof expected}`}`);
    }
  }
  return checked({ ...DEFAULT, ...(Object.fromEntries(known) as Partial<Scene>) });
}

/** Returns the fragment of a scene. */
export function toHash(scene: Scene): string {
  const entries = Object.entries(scene).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULT[key as keyof Scene]),
  );
  return `#${encodeURIComponent(JSON.stringify(Object.fromEntries(entries)))}`;
}

/** Returns the keys of the workload, as in a study file. */
export function workloadKeys(scene: Scene): Record<string, unknown> {
  const kind = scene.size ? { kind: "file", size: scene.size } : { kind: "bulk", duration: `${LONGEST_S}s` };
  const counted = scene.flows > 1 ? { flows: scene.flows } : {};
  const jitter = scene.startJitter ? { start_jitter: scene.startJitter } : {};
  return { ...kind, ...counted, ...jitter, ...hostKeys(scene, scene.pair) };
}

/** Returns the specification of one world. */
export function specOf(scene: Scene, name: string): Spec {
  return {
    ...networkKeys(scene),
    protocol: protocolKey(name, scene),
    workload: workloadKeys(scene),
    ...(scene.rivals.length > 0 ? { traffic: rivalKeys(scene) } : {}),
    seed: scene.seed,
    trial: 0,
  };
}
