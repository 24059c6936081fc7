// The controls of the protocols beside those of the configurations, and of the hosts of all flows.
import { firstHost, pairsOf } from "./network-keys";
import { PROTOCOLS } from "./protocols";
import { MOST_RIVALS, type Rival } from "./rivals";
import type { Scene } from "./scene";

export class RivalsForm {
  private readonly rows = document.createElement("div");
  private shown = "";

  constructor(private readonly set: (changes: Partial<Scene>) => void) {
    this.rows.className = "group";
    document.getElementById("rivals")!.append(this.rows);
    // Its inputs are no settings of the form.
    this.rows.onchange = (event) => event.stopPropagation();
  }

  /** Writes the rivals of a scene into the controls. */
  fill(scene: Scene): void {
    const key = JSON.stringify([scene.rivals, scene.pair, scene.topology, pairsOf(scene)]);
    if (key === this.shown) return;
    this.shown = key;
    const rows = scene.rivals.map((_, place) => this.row(scene, place));
    if (scene.rivals.length < MOST_RIVALS) rows.push(this.row(scene, scene.rivals.length));
    if (pairsOf(scene) > 1 && scene.rivals.length > 0) rows.unshift(this.measured(scene));
    this.rows.replaceChildren(...rows);
  }

  /** The sender of the measured flows. */
  private measured(scene: Scene): HTMLElement {
    const row = document.createElement("span");
    row.className = "rival";
    row.append("Protocols above", this.senders(scene, scene.pair, "Sender of the protocols above", (pair) => this.set({ pair })));
    return row;
  }

  private row(scene: Scene, place: number): HTMLElement {
    const row = document.createElement("span");
    row.className = "rival";
    const rival = scene.rivals[place];
    const replace = (next: Rival | undefined): void => {
      const rivals = scene.rivals.filter((_, other) => other !== place);
      if (next) rivals.splice(place, 0, next);
      this.set({ rivals });
    };
    const select = document.createElement("select");
    select.setAttribute("aria-label", `Protocol beside, ${place + 1}`);
    select.add(new Option("none", ""));
    for (const [name, { label }] of Object.entries(PROTOCOLS)) select.add(new Option(label, name));
    select.value = rival?.protocol ?? "";
    select.onchange = () => replace(select.value ? { ...withoutName(rival), protocol: select.value } : undefined);
    row.append(place === 0 ? "beside" : "and", select);
    if (!rival) return row;
    if (pairsOf(scene) > 1) {
      const change = (pair: number): void => {
        const { pair: _, ...others } = rival;
        replace(pair < 0 ? others : { ...others, pair });
      };
      row.append(this.senders(scene, rival.pair ?? -1, `Sender beside, ${place + 1}`, change));
    }
    const count = Object.assign(document.createElement("input"), { type: "number", min: "1", max: "64", value: String(rival.flows ?? 1) });
    count.setAttribute("aria-label", `Flows beside, ${place + 1}`);
    count.onchange = () => {
      const { flows: _, ...others } = rival;
      replace(Number(count.value) === 1 ? others : { ...others, flows: Number(count.value) });
    };
    row.append(count, (rival.flows ?? 1) === 1 ? "flow" : "flows");
    return row;
  }

  private senders(scene: Scene, pair: number, label: string, choose: (pair: number) => void): HTMLSelectElement {
    const select = document.createElement("select");
    select.setAttribute("aria-label", label);
    select.add(new Option("from all senders", "-1"));
    for (let number = 0; number < pairsOf(scene); number += 1) select.add(new Option(`from s${number + firstHost(scene)}`, String(number)));
    select.value = String(pair);
    select.onchange = () => choose(Number(select.value));
    return select;
  }
}

/** Another protocol has another name. */
function withoutName(rival: Rival | undefined): Partial<Rival> {
  const { name: _, ...others } = rival ?? {};
  return others;
}
