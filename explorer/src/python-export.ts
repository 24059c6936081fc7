// The export as a Python program: sessions of the scene, with all interventions.
import { linkChanges, protocolChanges } from "./applying";
import { bounded } from "./exports";
import type { Intervention } from "./interventions";
import { settingsAfter } from "./live-settings";
import { networkKeys } from "./network-keys";
import { protocolKey } from "./protocols";
import { namesOf, rivalKeys } from "./rivals";
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
  const body = steps(scene, cables);
  const numbered = body.some((line) => line.startsWith("if number"));
  return [
    "import longfat as lf",
    "",
    `network = ${literal(networkKeys(scene))}`,
    `workload = ${literal(bounded(workloadKeys(scene), scene))}`,
    ...(scene.rivals.length > 0 ? [`traffic = ${literal(rivalKeys(scene))}`] : []),
    `protocols = [\n${protocols.join("\n")}\n]`,
    numbered ? "for number, protocol in enumerate(protocols):" : "for protocol in protocols:",
    `    session = lf.Session(protocol, **network, workload=workload, ${scene.rivals.length > 0 ? "traffic=traffic, " : ""}seed=${scene.seed})`,
    ...body.map((line) => `    ${line}`),
    '    step = session.advance("10s")',
    '    print(protocol, step.samples["goodput_bps"].mean())',
    "",
  ].join("\n");
}

function steps(scene: Scene, cables: readonly (readonly string[])[]): string[] {
  let now = 0;
  return scene.interventions.flatMap((one) => {
    const wait = seconds(one.at - now);
    now = one.at;
    const calls = scene.worlds.map((_, place) => callsOf(one, place, scene, cables));
    return [...(wait === "0s" ? [] : [`session.advance(${literal(wait)})`]), ...together(calls)];
  });
}

/** Returns the calls of all configurations, with conditions where they differ. */
function together(calls: readonly string[][]): string[] {
  const texts = calls.map((own) => own.join("\n"));
  if (texts.every((text) => text === texts[0])) return calls[0]!;
  return calls.flatMap((own, place) => (own.length === 0 ? [] : [`if number == ${place}:`, ...own.map((call) => `    ${call}`)]));
}

/** Returns the argument that names the traffic of a group; none for the measured flows. */
const trafficArgument = ({ rivals }: Scene, group: number): string => (group === 0 ? "" : `, traffic=${literal(namesOf(rivals)[group - 1])}`);

function callsOf(one: Intervention, world: number, scene: Scene, cables: readonly (readonly string[])[]): string[] {
  switch (one.do) {
    case "lose":
      return one.world === world ? [`session.drop(${one.id})`] : [];
    case "lose-next":
      return [`session.drop_next(${one.flow})`];
    case "start-flow":
      return [`session.start_flow(${one.size ? `${literal(one.size)}, ` : ""}pair=${one.pair}${trafficArgument(scene, one.group ?? 0)})`];
    case "stop-flow":
      return [`session.stop_flow(${one.flow})`];
    case "change":
    case "change-protocol": {
      const after = settingsAfter(scene, one);
      const links = linkChanges(one, after, cables);
      return [
        ...links.map(({ link, key, value }) => `session.set_link(${literal(link)}, ${key}=${literal(value)})`),
        ...protocolChanges(one, after, world).map(
          ({ group, key, value }) => `session.set_protocol(${key}=${literal(value)}${trafficArgument(scene, group)})`,
        ),
      ];
    }
  }
}
