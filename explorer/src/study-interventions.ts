// The interventions of a scene in its study file: flows that start have keys, all others do not.
import { textOf, timeOf, type Intervention } from "./interventions";
import { flowsOf, pairsOf } from "./network-keys";
import { protocolKey } from "./protocols";
import { hostKeys } from "./rivals";
import type { Scene } from "./scene";

type Keys = Record<string, unknown>;
type Start = Extract<Intervention, { do: "start-flow" }>;

const MOST_LISTED = 6;

/** Interventions as keys of a study file. */
export interface StudyInterventions {
  /** Keys of the workload that start further flows like the first one. */
  workload: Keys;
  /** Entries of [[traffic]] that start other flows. */
  traffic: Keys[];
  /** What a study file cannot express. */
  omitted: Intervention[];
}

/** Returns a time as text, exact to 1 ns. */
export const seconds = (time: number): string => `${Number(time.toFixed(9))}s`;

export function studyInterventions(scene: Scene): StudyInterventions {
  const starts = scene.interventions.filter((one): one is Start => one.do === "start-flow");
  const others = scene.interventions.filter((one) => one.do !== "start-flow");
  if (starts.length === 0 || isEven(scene, starts)) {
    const workload = starts.length === 0 ? {} : { flows: 1 + starts.length, stagger: seconds(starts[0]!.at) };
    return { workload, traffic: [], omitted: others };
  }
  // The flows of the page have the protocol of their configuration, those of a study's traffic have one in all.
  if (scene.worlds.length > 1) return { workload: {}, traffic: [], omitted: scene.interventions };
  return { workload: {}, traffic: starts.map((start, place) => trafficOf(scene, start, place)), omitted: others };
}

/** Returns whether all flows are alike and start at equal intervals from 0: then they are flows of the workload. */
function isEven(scene: Scene, starts: readonly Start[]): boolean {
  const [first] = starts;
  if (pairsOf(scene) > 1 || scene.flows > 1 || first!.at === 0) return false;
  return starts.every(({ at, size, group = 0 }, place) => !size && group === 0 && seconds(at) === seconds((place + 1) * first!.at));
}

function trafficOf(scene: Scene, { at, pair, size, group = 0 }: Start, place: number): Keys {
  const rival = scene.rivals[group - 1];
  const [own, whole] = rival ? [rival.pair, rival.size] : [scene.pair < 0 ? undefined : scene.pair, scene.size];
  const data = size || whole ? { kind: "file", size: size || whole } : { kind: "bulk" };
  return {
    name: `flow-${flowsOf(scene) + place + 1}`,
    protocol: protocolKey(rival?.protocol ?? scene.worlds[0]!, scene),
    // The pairs of a group are those of the topology, or a single one.
    workload: { ...data, start: seconds(at), ...hostKeys(scene, own ?? pair) },
  };
}

/** Returns the omitted interventions as one sentence, or nothing. */
export function omissions(scene: Scene): string {
  const { omitted } = studyInterventions(scene);
  if (omitted.length === 0) return "";
  const listed = omitted.slice(0, MOST_LISTED).map((one) => `${textOf(one, scene.worlds.length > 1)} (at ${timeOf(one)})`);
  const more = omitted.length - listed.length;
  return `Study files cannot express these interventions: ${listed.join("; ")}${more > 0 ? `; ${more} more` : ""}.`;
}
