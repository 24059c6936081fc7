// Interventions: lost packets, and flows that start and stop, each at its time. A scene contains them, and a restart repeats
// them at the same virtual times.
import { quantity } from "./quantities";
import type { Session } from "./engine";

export type Intervention =
  /** The loss of a packet of one configuration. */
  | { at: number; do: "lose"; world: number; id: number }
  /** The loss of the next data packet of a flow, in each configuration. */
  | { at: number; do: "lose-next"; flow: number }
  | { at: number; do: "start-flow"; pair: number; size: string }
  | { at: number; do: "stop-flow"; flow: number };

export const MOST_INTERVENTIONS = 200;

const NUMBERS: Readonly<Record<string, readonly string[]>> = {
  lose: ["world", "id"],
  "lose-next": ["flow"],
  "start-flow": ["pair"],
  "stop-flow": ["flow"],
};

/** Returns the interventions of an address, or throws. */
export function checkedInterventions(content: readonly unknown[]): Intervention[] {
  if (content.length > MOST_INTERVENTIONS) {
    throw new Error(`interventions: ${content.length} are too many (limit ${MOST_INTERVENTIONS})`);
  }
  let before = 0;
  for (const one of content as Record<string, unknown>[]) {
    const numbers = NUMBERS[String(one?.["do"])];
    if (!numbers) throw new Error(`interventions: unknown kind "${one?.["do"]}" (${Object.keys(NUMBERS).join(", ")})`);
    const at = one["at"];
    if (typeof at !== "number" || !(at >= before)) throw new Error("interventions: times do not increase");
    before = at;
    for (const key of numbers) {
      if (!Number.isInteger(one[key]) || (one[key] as number) < 0) throw new Error(`interventions: ${key}: expected a number`);
    }
    if (one["do"] === "start-flow" && one["size"]) quantity("size", String(one["size"]));
  }
  return content as Intervention[];
}

/** Applies an intervention to the session of a configuration. */
export async function apply(intervention: Intervention, place: number, session: Session): Promise<void> {
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
  }
}
