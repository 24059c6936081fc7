// Interventions on the sessions of configurations.
import type { Session } from "./engine";
import type { Intervention } from "./interventions";
import { cablesOf } from "./layout";
import { settingsAfter, type LiveKey } from "./live-settings";
import { flowsOf, lossKey, queueKey } from "./network-keys";
import { protocolKey } from "./protocols";
import { quantity } from "./quantities";
import type { Scene } from "./scene";
import type { World } from "./world";

/** A configuration: its place, its session and what the page draws of it. */
export interface Configuration {
  place: number;
  session: Session;
  world: World;
}

/** Applies an intervention of a scene to a configuration. */
export async function apply(intervention: Intervention, scene: Scene, configuration: Configuration): Promise<void> {
  const { place, session } = configuration;
  switch (intervention.do) {
    case "lose":
      if (intervention.world === place) await session.lose(intervention.id);
      return;
    case "lose-next":
      return session.loseNext(intervention.flow);
    case "start-flow":
      return void (await session.startFlow(intervention.pair, intervention.size));
    case "stop-flow":
      return session.stopFlow(intervention.flow);
    case "change":
      return changePath(intervention.key, settingsAfter(scene, intervention), session);
    case "change-controller":
      if (intervention.world === place) await changeController(intervention.name, settingsAfter(scene, intervention), configuration);
  }
}

/** A change of one key of a link. */
export interface LinkChange {
  link: string;
  key: string;
  value: unknown;
}

/** Returns the changes of links for a setting of the path, or of each bottleneck. `cables` have the links of both directions. */
export function linkChanges(key: LiveKey, scene: Scene, cables: readonly (readonly string[])[]): LinkChange[] {
  const written = key === "burst" ? "loss" : key.replace("2", "");
  return (key === "burst" ? [false, true] : [key.endsWith("2")]).flatMap((second) => {
    const own = scene.topology === "two-paths" ? cables.slice(second ? 1 : 0, second ? 2 : 1) : second ? [] : cables;
    const value = valueOf(written, second, scene);
    return own.flat().map((link) => ({ link, key: written, value }));
  });
}

async function changePath(key: LiveKey, scene: Scene, session: Session): Promise<void> {
  for (const change of linkChanges(key, scene, cablesOf(session.network))) await session.changeLink(change.link, change.key, change.value);
}

function valueOf(key: string, second: boolean, scene: Scene): unknown {
  const own = second
    ? { rate: scene.rate2, delay: scene.delay2, loss: scene.loss2, queue: scene.queue2, jitter: "0ms" }
    : scene;
  if (key === "loss") return lossKey(scene, own.loss);
  if (key === "queue") return queueKey(scene, own.queue);
  if (key === "jitter") return quantity("jitter", own.jitter) === 0 ? null : own.jitter;
  return key === "rate" ? own.rate : own.delay;
}

/** Replaces the controller of all flows, and of those that start later. */
async function changeController(name: string, scene: Scene, { session, world }: Configuration): Promise<void> {
  const { congestion } = protocolKey(name, scene);
  const flows = Math.max(flowsOf(scene), world.started);
  const errors: unknown[] = [];
  let changed = 0;
  for (let flow = 0; flow < flows; flow += 1) {
    // A flow that is complete has no controller.
    await session.setController(flow, congestion).then(() => (changed += 1), (error: unknown) => errors.push(error));
  }
  if (changed === 0 && errors.length > 0) throw errors[0];
  await session.setController(undefined, congestion);
}
