// The network of a scene, as in a study file.
import { quantity } from "./quantities";
import type { Scene } from "./scene";

type Keys = Record<string, unknown>;

/** Returns whether a queue discipline can mark packets. */
export const marks = (discipline: string): boolean => !discipline.startsWith("drop-");

/** Returns the key of the queue. */
export function queueKey(scene: Scene, limit = scene.queue): unknown {
  const { discipline, ecn } = scene;
  if (discipline === "drop-tail") return limit;
  return ecn === "on" && marks(discipline) ? { kind: discipline, limit, ecn: true } : { kind: discipline, limit };
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
      const access = scene.senders.split(",").map((delay) => ({ delay: delay.trim() }));
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

/** Returns the number of flows at the start. */
export const flowsOf = (scene: Scene): number => scene.flows * pairsOf(scene);
