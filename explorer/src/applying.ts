// Interventions on the sessions of configurations.
import type { Session } from "./engine";
import type { Intervention } from "./interventions";
import { cablesOf } from "./layout";
import { settingsAfter } from "./live-settings";
import { lossKey, queueKey } from "./network-keys";
import { isProtocolSetting, keyOf, liveDifferenceOf, protocolKey } from "./protocols";
import { quantity } from "./quantities";
import type { Scene } from "./scene";

/** A configuration: its place and its session. */
export interface Configuration {
  place: number;
  session: Session;
}

/** Applies an intervention of a scene to a configuration. Returns the number of the flow that it starts, if any. */
export async function apply(intervention: Intervention, scene: Scene, configuration: Configuration): Promise<number | undefined> {
  const { place, session } = configuration;
  switch (intervention.do) {
    case "lose":
      if (intervention.world === place) await session.lose(intervention.id);
      return undefined;
    case "lose-next":
      return void (await session.loseNext(intervention.flow));
    case "start-flow":
      return session.startFlow(intervention.group ?? 0, intervention.pair, intervention.size);
    case "stop-flow":
      return void (await session.stopFlow(intervention.flow));
    case "change":
    case "change-protocol": {
      const after = settingsAfter(scene, intervention);
      for (const { link, key, value } of linkChanges(intervention, after, cablesOf(session.network))) await session.changeLink(link, key, value);
      for (const { group, key, value } of protocolChanges(intervention, after, place)) await session.changeProtocol(group, key, value);
      return undefined;
    }
  }
}

/** A change of one key of a link. */
export interface LinkChange {
  link: string;
  key: string;
  value: unknown;
}

/** A change of one key of the protocol of a group of flows: 0 for the measured ones, then the rivals. */
export interface ProtocolChange {
  group: number;
  key: string;
  value: unknown;
}

/** Settings of links whose study key has another name. */
const LINK_KEYS: Readonly<Record<string, string>> = { burst: "loss", discipline: "queue", target: "queue", rate2: "rate", delay2: "delay", loss2: "loss", queue2: "queue" };

/**
 * Returns the changes of links by an intervention, with the settings after it: of the path, or of each bottleneck. `cables` have
 * the links of both directions.
 */
export function linkChanges(intervention: Intervention, scene: Scene, cables: readonly (readonly string[])[]): LinkChange[] {
  if (intervention.do !== "change" || isProtocolSetting(intervention.key)) return [];
  const { key } = intervention;
  const written = LINK_KEYS[key] ?? key;
  const both = key === "burst" || key === "discipline" || key === "target";
  return (both ? [false, true] : [key.endsWith("2")]).flatMap((second) => {
    const own = scene.topology === "two-paths" ? cables.slice(second ? 1 : 0, second ? 2 : 1) : second ? [] : cables;
    const value = valueOf(written, second, scene);
    return own.flat().map((link) => ({ link, key: written, value }));
  });
}

/** Returns the changes of a configuration's protocols by an intervention, with the settings after it. */
export function protocolChanges(intervention: Intervention, scene: Scene, place: number): ProtocolChange[] {
  const names = [scene.worlds[place]!, ...scene.rivals.map(({ protocol }) => protocol)];
  return names.flatMap((name, group) => {
    const key =
      intervention.do === "change"
        ? keyOf(intervention.key, name)
        : intervention.do === "change-protocol" && intervention.world === place && group === 0
          ? liveDifferenceOf(name)
          : undefined;
    return key === undefined ? [] : [{ group, key, value: protocolKey(name, scene)[key] ?? null }];
  });
}

/** Returns whether an intervention concerns a configuration with these protocols. */
export const concerns = (intervention: Intervention, names: readonly string[]): boolean =>
  intervention.do !== "change" || !isProtocolSetting(intervention.key) || names.some((name) => keyOf(intervention.key, name) !== undefined);

function valueOf(key: string, second: boolean, scene: Scene): unknown {
  const own = second
    ? { rate: scene.rate2, delay: scene.delay2, loss: scene.loss2, queue: scene.queue2, jitter: "0ms" }
    : scene;
  if (key === "loss") return lossKey(scene, own.loss);
  if (key === "queue") return queueKey(scene, own.queue);
  if (key === "jitter") return quantity("jitter", own.jitter) === 0 ? null : own.jitter;
  return key === "rate" ? own.rate : own.delay;
}
