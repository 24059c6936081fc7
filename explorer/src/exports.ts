// Exports of a scene: a study file, a Python snippet, a picture.
import { networkKeys } from "./network-keys";
import { PROTOCOLS, protocolKey } from "./protocols";
import { workloadKeys, type Scene } from "./scene";

const STUDY_S = "30s";

function inline(keys: Record<string, unknown>): string {
  return `{ ${Object.entries(keys)
    .map(([key, value]) => `${key} = ${literal(value)}`)
    .join(", ")} }`;
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  return typeof value === "object" && value !== null ? inline(value as Record<string, unknown>) : JSON.stringify(value);
}

function bounded(keys: Record<string, unknown>): Record<string, unknown> {
  return "duration" in keys ? { ...keys, duration: STUDY_S } : keys;
}

/** Returns the scene as a study file. */
export function studyFile(scene: Scene): string {
  const protocols = [...new Set(scene.worlds)].map((name) => `    ${inline({ name, ...protocolKey(name, scene) })},`);
  const title = [...new Set(scene.worlds)].map((name) => PROTOCOLS[name]!.label).join(" or ");
  const interventions = scene.interventions.length > 0;
  return [
    ...(interventions ? ["# Without the packets dropped and the flows started and stopped in the page."] : []),
    `title     = ${JSON.stringify(`${title}?`)}`,
    ...Object.entries(networkKeys(scene)).map(([key, value]) => `${key.padEnd(9)} = ${literal(value)}`),
    `workload  = ${inline(bounded(workloadKeys(scene)))}`,
    `protocols = [\n${protocols.join("\n")}\n]`,
    `show      = ["goodput", "rtt_mean", "retransmissions"]`,
    `seed      = ${scene.seed}`,
    `repeats   = 10`,
    "",
  ].join("\n");
}

/** Returns a program with sessions of the scene. */
export function pythonSnippet(scene: Scene): string {
  const protocols = scene.worlds.map((name) => `    ${JSON.stringify(protocolKey(name, scene))},`);
  return [
    "import longfat as lf",
    "",
    `network = ${JSON.stringify(networkKeys(scene))}`,
    `workload = ${JSON.stringify(bounded(workloadKeys(scene)))}`,
    `protocols = [\n${protocols.join("\n")}\n]`,
    "for protocol in protocols:",
    `    session = lf.Session(protocol, **network, workload=workload, seed=${scene.seed})`,
    '    step = session.advance("10s")',
    '    print(protocol, step.samples["goodput_bps"].mean())',
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
