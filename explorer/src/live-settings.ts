// Settings that change while a scene runs: those of the scene, then those of its interventions.
import type { Intervention } from "./interventions";
import type { Scene } from "./scene";

/** Settings that change while a scene runs, with their names in texts: those of links, then those of protocols. */
export const LIVE = {
  rate: "rate",
  delay: "delay",
  jitter: "jitter",
  loss: "loss",
  burst: "loss burst",
  queue: "queue",
  rate2: "rate of path 2",
  delay2: "delay of path 2",
  loss2: "loss of path 2",
  queue2: "queue of path 2",
  discipline: "queue discipline",
  target: "target delay of the queue",
  window: "ARQ window",
  rto: "ARQ timeout",
  ackEvery: "packets per ARQ ACK",
  ackDelay: "ARQ ACK delay",
  minRto: "minimum RTO",
  delayedAck: "delayed ACK",
  coupling: "MPTCP controller",
} as const;
export type LiveKey = keyof typeof LIVE;

/** Those that are numbers; all others are texts. */
const NUMBERS: readonly LiveKey[] = ["burst", "window", "ackEvery"];

export const typeOfLive = (key: LiveKey): "number" | "string" => (NUMBERS.includes(key) ? "number" : "string");

/** Returns the value of a setting in texts. */
export const valueText = (value: string | number): string => (value === "" ? "default" : String(value));

export const isLive = (key: string): key is LiveKey => Object.hasOwn(LIVE, key);

/** Times of interventions are exact to 1 ns. */
export const SAME_TIME_S = 1e-9;

/** Returns whether an intervention changes a setting. */
export const changesSettings = (intervention: Intervention): boolean => intervention.do.startsWith("change");

/** Returns the scene with the settings after an intervention. */
export function after(scene: Scene, intervention: Intervention): Scene {
  if (intervention.do === "change") return { ...scene, [intervention.key]: intervention.value };
  if (intervention.do !== "change-protocol") return scene;
  return { ...scene, worlds: scene.worlds.map((name, place) => (place === intervention.world ? intervention.name : name)) };
}

/** Returns the scene with its settings at a time. */
export function settingsAt(scene: Scene, time: number): Scene {
  return scene.interventions.filter(({ at }) => at <= time + SAME_TIME_S).reduce(after, scene);
}

/** Returns the scene with its settings after one of its interventions. */
export function settingsAfter(scene: Scene, intervention: Intervention): Scene {
  return scene.interventions.slice(0, scene.interventions.indexOf(intervention) + 1).reduce(after, scene);
}

/** Returns the scene that has its last settings from the start. */
export function fromStart(scene: Scene): Scene {
  const interventions = scene.interventions.filter((one) => !changesSettings(one));
  return { ...settingsAt(scene, Infinity), interventions };
}
