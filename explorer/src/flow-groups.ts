// The flows of a world: the protocol, the hosts and the name of each, from the engine's records of their starts.
import type { NetworkShape, StartedFlow } from "./engine";
import { pairsOf } from "./network-keys";
import { PROTOCOLS } from "./protocols";
import type { Rival } from "./rivals";
import type { Scene } from "./scene";
import { payloadOf } from "./theory";

export class FlowGroups {
  private readonly flows: StartedFlow[];

  constructor(
    /** The protocol of the measured flows, which an intervention can change. */
    public measured: string,
    private readonly rivals: readonly Rival[],
    private readonly network: NetworkShape,
    planned: readonly StartedFlow[],
  ) {
    this.flows = [...planned];
  }

  /** Returns the number of started flows. */
  get count(): number {
    return this.flows.length;
  }

  /** Returns whether flows have different protocols. */
  get several(): boolean {
    return this.rivals.length > 0;
  }

  /** Adds flows that started. */
  add(started: readonly StartedFlow[]): void {
    for (const one of started) this.flows[one.flow] = one;
  }

  /** Returns the number of the first measured flow. */
  get main(): number {
    return this.flows.find((one) => one?.group === 0)?.flow ?? 0;
  }

  /** Returns the protocols of all groups: that of the measured flows, then those of the rivals. */
  get protocols(): string[] {
    return [this.measured, ...this.rivals.map(({ protocol }) => protocol)];
  }

  /** Returns the group of a flow: 0 for the measured ones, then the rivals. */
  groupOf(flow: number): number {
    return this.flows[flow]?.group ?? 0;
  }

  /** Returns the number of a flow's pair of hosts in its group. */
  pairOf(flow: number): number {
    return this.flows[flow]?.pair ?? 0;
  }

  protocolOf(flow: number): string {
    return this.protocols[this.groupOf(flow)] ?? this.measured;
  }

  /** Returns the payload of a flow's full packets in bytes. */
  payloadOf(flow: number): number {
    return payloadOf(this.protocolOf(flow));
  }

  /** Returns the sending host of a flow; nothing if all flows have the same. */
  hostOf(flow: number): string | undefined {
    if (this.network.pairs.length === 1) return undefined;
    return this.network.groups[this.groupOf(flow)]?.pairs[this.pairOf(flow)]?.[0];
  }

  /** Returns a flow's number, its protocol if there are several, and its host if there are several. */
  labelOf(flow: number): string {
    const protocol = this.several ? `: ${PROTOCOLS[this.protocolOf(flow)]!.label}` : "";
    const host = this.hostOf(flow);
    return `flow ${flow + 1}${protocol}${host === undefined ? "" : ` (${host})`}`;
  }

  /** Returns the name of a flow or subflow at the start of a sentence. With one protocol, flow 1 has none. */
  prefix(flow: number, subflow?: number): string {
    const path = subflow === undefined ? "" : `ubflow ${subflow + 1}: `;
    if (!this.several && flow === 0) return path && `S${path}`;
    const protocol = this.several ? ` (${PROTOCOLS[this.protocolOf(flow)]!.label})` : "";
    return `Flow ${flow + 1}${protocol}${path ? `, s${path}` : ": "}`;
  }
}

/** Returns the flows at the start of a scene in the order of their starts; none if that is random. */
export function plannedFlows(scene: Scene): StartedFlow[] {
  const { rivals, flows, pair, startJitter } = scene;
  if (startJitter) return [];
  const groups: Partial<Rival>[] = [pair < 0 ? { flows } : { flows, pair }, ...rivals];
  const planned = groups.flatMap(({ pair: own, flows: each = 1, start }, group) => {
    const pairs = own === undefined ? pairsOf(scene) : 1;
    return Array.from({ length: start ? 0 : each * pairs }, (_, number) => ({ group, pair: number % pairs }));
  });
  return planned.map((one, flow) => ({ flow, ...one }));
}
