// The controls of single flows: start, stop, and drop the next packet.
import type { Intervention } from "./interventions";
import type { World } from "./world";

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

export class FlowControls {
  private readonly flow = by<HTMLSelectElement>("flow");
  private shown = "";
  private world: World | undefined;

  constructor(act: (intervention: Intervention) => void) {
    const flow = (): number => Number(this.flow.value);
    by("drop-next").onclick = () => act({ at: 0, do: "lose-next", flow: flow() });
    by("stop-flow").onclick = () => act({ at: 0, do: "stop-flow", flow: flow() });
    by("start-flow").onclick = () => {
      const [group, pair] = [this.world?.groups.groupOf(flow()) ?? 0, this.world?.groups.pairOf(flow()) ?? 0];
      const start = { at: 0, do: "start-flow", pair, size: by<HTMLInputElement>("flow-size").value.trim() } as const;
      act(group > 0 ? { ...start, group } : start);
    };
  }

  /** Returns the chosen flow. */
  get chosen(): number {
    return Number(this.flow.value);
  }

  describe(world: World | undefined): void {
    this.world = world;
    const names = Array.from({ length: world?.started ?? 1 }, (_, flow) => {
      return `${world?.groups.labelOf(flow) ?? `flow ${flow + 1}`}${world?.stopped.has(flow) ? ", stopped" : ""}`;
    });
    const key = names.join();
    if (key === this.shown) return;
    this.shown = key;
    const { value } = this.flow;
    this.flow.replaceChildren(...names.map((name, flow) => new Option(name, String(flow))));
    this.flow.value = Number(value) < names.length && value ? value : "0";
  }
}
