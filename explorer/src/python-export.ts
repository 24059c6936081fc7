// The export as a Python program: sessions of the scene, with all interventions.
import { linkChanges } from "./applying";
import { bounded } from "./exports";
import type { Intervention } from "./interventions";
import { settingsAfter } from "./live-settings";
import { flowsOf, networkKeys } from "./network-keys";
import { protocolKey } from "./protocols";
import { workloadKeys, type Scene } from "./scene";
import { seconds } from "./study-interventions";

/** Returns a value as a Python literal. */
function literal(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value as Record<string, unknown>);
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(", ")}}`;
}

/** Returns a program with sessions of the scene. `cables` have the links of both directions. */
export function pythonProgram(scene: Scene, cables: readonly (readonly string[])[]): string {
  const protocols = scene.worlds.map((name) => `    ${literal(protocolKey(name, scene))},`);
  const several = scene.interventions.some((one) => "world" in one) && scene.worlds.length > 1;
  return [
    ...(scene.interventions.some((one) => one.do === "change-controller") ? ["import contextlib", ""] : []),
    "import longfat as lf",
    "",
    `network = ${literal(networkKeys(scene))}`,
    `workload = ${literal(bounded(workloadKeys(scene), scene))}`,
    `protocols = [\n${protocols.join("\n")}\n]`,
    several ? "for number, protocol in enumerate(protocols):" : "for protocol in protocols:",
    `    session = lf.Session(protocol, **network, workload=workload, seed=${scene.seed})`,
    ...steps(scene, cables, several).map((line) => `    ${line}`),
    '    step = session.advance("10s")',
    '    print(protocol, step.samples["goodput_bps"].mean())',
    "",
  ].join("\n");
}

function steps(scene: Scene, cables: readonly (readonly string[])[], several: boolean): string[] {
  let now = 0;
  return scene.interventions.flatMap((one, place) => {
    const wait = seconds(one.at - now);
    now = one.at;
    const calls = callsOf(one, place, scene, cables);
    const own = several && "world" in one ? [`if number == ${one.world}:`, ...calls.map((call) => `    ${call}`)] : calls;
    return [...(wait === "0s" ? [] : [`session.advance(${literal(wait)})`]), ...own];
  });
}

function callsOf(one: Intervention, place: number, scene: Scene, cables: readonly (readonly string[])[]): string[] {
  switch (one.do) {
    case "lose":
      return [`session.drop(${one.id})`];
    case "lose-next":
      return [`session.drop_next(${one.flow})`];
    case "start-flow":
      return [`session.start_flow(${one.size ? `${literal(one.size)}, ` : ""}pair=${one.pair})`];
    case "stop-flow":
      return [`session.stop_flow(${one.flow})`];
    case "change": {
      const changes = linkChanges(one.key, settingsAfter(scene, one), cables);
      return changes.map(({ link, key, value }) => `session.set_link(${literal(link)}, ${key}=${literal(value)})`);
    }
    case "change-controller": {
      const { congestion } = protocolKey(one.name, scene);
      const started = scene.interventions.slice(0, place).filter((other) => other.do === "start-flow").length;
      const count = flowsOf(scene) + started;
      const controller = literal(congestion);
      const later = `session.set_controller(${controller}, flow=None)`;
      if (count === 1) return [`session.set_controller(${controller})`, later];
      // The page changes the flows that are not complete.
      return [
        `for flow in range(${count}):`,
        "    with contextlib.suppress(ValueError):",
        `        session.set_controller(${controller}, flow)`,
        later,
      ];
    }
  }
}
