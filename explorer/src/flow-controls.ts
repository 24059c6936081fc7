// The controls of single flows: start, stop, and drop the next packet.
import type { Intervention } from "./interventions";
import { pairsOf } from "./network-keys";
import type { Scene } from "./scene";
import type { World } from "./world";

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

export class FlowControls {
  private readonly flow = by<HTMLSelectElement>("flow");
  private shown = "";

  constructor(
    private readonly scene: () => Scene,
    act: (intervention: Intervention) => void,
  ) {
    const flow = (): number => Number(this.flow.value);
    by("drop-next").onclick = () => act({ at: 0, do: "lose-next", flow: flow() });
    by("stop-flow").onclick = () => act({ at: 0, do: "stop-flow", flow: flow() });
    by("start-flow").onclick = () => {
      const pair = flow() % pairsOf(this.scene());
      act({ at: 0, do: "start-flow", pair, size: by<HTMLInputElement>("flow-size").value.trim() });
    };
  }

  /** Returns the chosen flow. */
  get chosen(): number {
    return Number(this.flow.value);
  }

  describe(world: World | undefined): void {
    const { pairs } = world?.network ?? { pairs: [] };
    const names = Array.from({ length: world?.started ?? 1 }, (_, flow) => {
      const host = pairs.length > 1 ? ` from ${pairs[flow % pairs.length]![0].name}` : "";
      return `flow ${flow + 1}${host}${world?.stopped.has(flow) ? ", stopped" : ""}`;
    });
    const key = names.join();
    if (key === this.shown) return;
    this.shown = key;
    const { value } = this.flow;
    this.flow.replaceChildren(...names.map((name, flow) => new Option(name, String(flow))));
    this.flow.value = Number(value) < names.length && value ? value : "0";
  }
}
