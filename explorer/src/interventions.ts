// Interventions: lost packets, flows that start and stop, and changes of settings, each at its time. A scene contains them,
// and a restart repeats them at the same virtual times.
import { isLive, LIVE, typeOfLive, valueText, type LiveKey } from "./live-settings";
import { PROTOCOLS } from "./protocols";
import { quantity } from "./quantities";

export type Intervention =
  /** The loss of a packet of one configuration. */
  | { at: number; do: "lose"; world: number; id: number }
  /** The loss of the next data packet of a flow, in each configuration. */
  | { at: number; do: "lose-next"; flow: number }
  /** A flow between a pair of hosts of a group: 0 or nothing for the measured flows, then the rivals. */
  | { at: number; do: "start-flow"; pair: number; size: string; group?: number }
  | { at: number; do: "stop-flow"; flow: number }
  /** Another value of a setting, in each configuration. */
  | { at: number; do: "change"; key: LiveKey; value: string | number }
  /** Another TCP controller or MPTCP scheduler of one configuration. */
  | { at: number; do: "change-protocol"; world: number; name: string };

export const MOST_INTERVENTIONS = 200;

const NUMBERS: Readonly<Record<string, readonly string[]>> = {
  lose: ["world", "id"],
  "lose-next": ["flow"],
  "start-flow": ["pair"],
  "stop-flow": ["flow"],
  change: [],
  "change-protocol": ["world"],
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
    const wanted = one["group"] === undefined ? numbers : [...numbers, "group"];
    const at = one["at"];
    if (typeof at !== "number" || !(at >= before)) throw new Error("interventions: times do not increase");
    before = at;
    for (const key of wanted) {
      if (!Number.isInteger(one[key]) || (one[key] as number) < 0) throw new Error(`interventions: ${key}: expected a number`);
    }
    if (one["do"] === "start-flow" && one["size"]) quantity("size", String(one["size"]));
    if (one["do"] === "change") checkChange(one);
  }
  return content as Intervention[];
}

function checkChange({ key, value }: Record<string, unknown>): void {
  if (typeof key !== "string" || !isLive(key)) {
    throw new Error(`interventions: the setting "${key}" does not change while a scene runs (${Object.keys(LIVE).join(", ")})`);
  }
  const expected = typeOfLive(key);
  if (typeof value !== expected) throw new Error(`interventions: ${key}: expected a ${expected}`);
}

/** Returns the text of an intervention without its time. `several` configurations have numbers. */
export function textOf(intervention: Intervention, several: boolean): string {
  const where = several && "world" in intervention ? `, configuration ${intervention.world + 1}` : "";
  switch (intervention.do) {
    case "lose":
      return `one packet dropped${where}`;
    case "lose-next":
      return `next packet of flow ${intervention.flow + 1} dropped`;
    case "start-flow":
      return intervention.size ? `a flow of ${intervention.size} starts` : "a flow starts";
    case "stop-flow":
      return `flow ${intervention.flow + 1} stops`;
    case "change":
      return `${LIVE[intervention.key]} ${valueText(intervention.value)}`;
    case "change-protocol":
      return `${PROTOCOLS[intervention.name]!.label}${where}`;
  }
}

/** Returns the time of an intervention as text. */
export const timeOf = ({ at }: Intervention): string => `${Number(at.toFixed(3))} s`;
