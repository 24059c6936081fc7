// The export of a scene as a study file.
import { networkKeys } from "./network-keys";
import { protocolKey } from "./protocols";
import { labelWith, rivalKeys } from "./rivals";
import { workloadKeys, type Scene } from "./scene";
import { omissions, studyInterventions } from "./study-interventions";

const SHORTEST_S = 30;
const AFTER_S = 10;

function inline(keys: Record<string, unknown>): string {
  return `{ ${Object.entries(keys)
    .map(([key, value]) => `${key} = ${literal(value)}`)
    .join(", ")} }`;
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  return typeof value === "object" && value !== null ? inline(value as Record<string, unknown>) : JSON.stringify(value);
}

/** Returns the workload with unlimited data for 30 s, or for 10 s after the last intervention. */
export function bounded(keys: Record<string, unknown>, { interventions }: Scene): Record<string, unknown> {
  const last = interventions[interventions.length - 1]?.at ?? 0;
  return "duration" in keys ? { ...keys, duration: `${Math.max(SHORTEST_S, Math.ceil(last + AFTER_S))}s` } : keys;
}

/** Returns the scene as a study file. */
export function studyFile(scene: Scene): string {
  const protocols = [...new Set(scene.worlds)].map((name) => `    ${inline({ name, ...protocolKey(name, scene) })},`);
  const title = [...new Set(scene.worlds)].map((name) => labelWith(name, scene.rivals)).join(" or ");
  const { workload, traffic: started } = studyInterventions(scene);
  const traffic = [...rivalKeys(scene), ...started];
  const comment = omissions(scene);
  return [
    ...(comment ? [`# ${comment}`] : []),
    `title     = ${JSON.stringify(`${title}?`)}`,
    ...Object.entries(networkKeys(scene)).map(([key, value]) => `${key.padEnd(9)} = ${literal(value)}`),
    `workload  = ${inline({ ...bounded(workloadKeys(scene), scene), ...workload })}`,
    ...(traffic.length > 0 ? [`traffic   = [\n${traffic.map((entry) => `    ${inline(entry)},`).join("\n")}\n]`] : []),
    `protocols = [\n${protocols.join("\n")}\n]`,
    `show      = ["goodput", "rtt_mean", "retransmissions"]`,
    `seed      = ${scene.seed}`,
    `repeats   = 10`,
    "",
  ].join("\n");
}

/** Saves a file from the page. */
export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
