// Exports of a scene: a study file, a Python snippet, a picture.
import { PROTOCOLS, protocolKey } from "./protocols";
import { pathKeys, workloadKeys, type Scene } from "./scene";

const STUDY_S = "30s";

function inline(keys: Record<string, unknown>): string {
  return `{ ${Object.entries(keys)
    .map(([key, value]) => `${key} = ${literal(value)}`)
    .join(", ")} }`;
}

function literal(value: unknown): string {
  return typeof value === "object" && value !== null ? inline(value as Record<string, unknown>) : JSON.stringify(value);
}

function bounded(keys: Record<string, unknown>): Record<string, unknown> {
  return "duration" in keys ? { ...keys, duration: STUDY_S } : keys;
}

/** Returns the scene as a study file. */
export function studyFile(scene: Scene): string {
  const protocols = [...new Set(scene.worlds)].map((name) => `    ${inline({ name, ...protocolKey(name, scene.window) })},`);
  const title = [...new Set(scene.worlds)].map((name) => PROTOCOLS[name]!.label).join(" or ");
  return [
    `title     = ${JSON.stringify(`${title}?`)}`,
    `path      = ${inline(pathKeys(scene))}`,
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
  const protocols = scene.worlds.map((name) => `    ${JSON.stringify(protocolKey(name, scene.window))},`);
  return [
    "import longfat as lf",
    "",
    `path = ${JSON.stringify(pathKeys(scene))}`,
    `workload = ${JSON.stringify(bounded(workloadKeys(scene)))}`,
    `protocols = [\n${protocols.join("\n")}\n]`,
    "for protocol in protocols:",
    `    session = lf.Session(protocol, path, workload=workload, seed=${scene.seed})`,
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
