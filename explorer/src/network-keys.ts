// The network of a scene, as in a study file.
import { quantity } from "./quantities";
import type { Scene } from "./scene";

type Keys = Record<string, unknown>;

/** Disciplines that mark packets instead of dropping them if a key requests it. Others never mark, or always. */
const MARKING = ["red", "codel", "fq-codel", "pie"];
/** Disciplines with a target delay. */
const TARGETED = ["codel", "fq-codel", "pie", "pi2", "dualpi2"];

/** Returns whether a key of a queue discipline decides that it marks packets. */
export const hasMarkingKey = (discipline: string): boolean => MARKING.includes(discipline);

/** Returns whether a queue discipline has a target delay. */
export const hasTarget = (discipline: string): boolean => TARGETED.includes(discipline);

/** Returns the key of the queue. */
export function queueKey(scene: Scene, limit = scene.queue): unknown {
  const { discipline, ecn, target } = scene;
  if (discipline === "drop-tail") return limit;
  const marking = ecn === "on" && hasMarkingKey(discipline) ? { ecn: true } : {};
  return { kind: discipline, limit, ...marking, ...(target && hasTarget(discipline) ? { target } : {}) };
}

const percent = (share: number): string => `${Number((share * 100).toPrecision(9))}%`;

/** Returns the key of the loss: independent, or in bursts with the same mean (Gilbert and Elliott); null for none. */
export function lossKey({ burst }: Scene, loss: string): unknown {
  const mean = quantity("loss", loss);
  if (mean === 0) return null;
  const enter = mean / (burst * (1 - mean));
  if (burst === 1 || !(enter <= 1)) return loss;
  return { kind: "gilbert-elliott", enter_bad: percent(enter), leave_bad: percent(1 / burst) };
}

/** Returns the keys of the path, or of each bottleneck. */
function pathKeys(scene: Scene): Keys {
  const keys: Keys = { rate: scene.rate, delay: scene.delay, queue: queueKey(scene) };
  const loss = lossKey(scene, scene.loss);
  if (loss !== null) keys["loss"] = loss;
  if (quantity("jitter", scene.jitter) > 0) keys["jitter"] = scene.jitter;
  return keys;
}

/** Returns the keys of the second path. */
function secondKeys(scene: Scene): Keys {
  const keys: Keys = { rate: scene.rate2, delay: scene.delay2, queue: queueKey(scene, scene.queue2) };
  const loss = lossKey(scene, scene.loss2);
  return loss === null ? keys : { ...keys, loss };
}

/** Returns the path or the topology. */
export function networkKeys(scene: Scene): { path: Keys } | { topology: Keys } {
  const path = pathKeys(scene);
  switch (scene.topology) {
    case "two-paths":
      return { topology: { kind: "multipath", path: [path, secondKeys(scene)] } };
    case "dumbbell": {
      const rate = scene.accessRate ? { rate: scene.accessRate } : {};
      const access = scene.senders.split(",").map((delay) => ({ ...rate, delay: delay.trim() }));
      return { topology: { kind: "dumbbell", bottleneck: path, access } };
    }
    case "parking-lot":
      return { topology: { kind: "parking-lot", hops: scene.hops, bottleneck: path } };
    default:
      return { path };
  }
}

/** Returns the number of pairs of hosts. */
export function pairsOf(scene: Scene): number {
  if (scene.topology === "dumbbell") return scene.senders.split(",").length;
  return scene.topology === "parking-lot" ? scene.hops + 1 : 1;
}

/** Returns the number of the first sender. */
export const firstHost = ({ topology }: Scene): number => (topology === "parking-lot" ? 0 : 1);

/** Returns the number of the pair between two hosts of a study file, -1 for all pairs; undefined if the page has no such pair. */
export function pairOf(scene: Scene, from: unknown, to: unknown): number | undefined {
  if (from === undefined && to === undefined) return -1;
  const pairs = Array.from({ length: pairsOf(scene) }, (_, pair) => pair);
  return pairs.find((pair) => from === `s${pair + firstHost(scene)}` && to === `r${pair + firstHost(scene)}`);
}

/** Returns the number of all flows: the measured ones, and those of the rivals. */
export function flowsOf(scene: Scene): number {
  const pairs = (pair: number | undefined): number => (pair === undefined || pair < 0 ? pairsOf(scene) : 1);
  return scene.rivals.reduce((sum, { flows = 1, pair }) => sum + flows * pairs(pair), scene.flows * pairs(scene.pair));
}
