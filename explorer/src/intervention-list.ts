// The list of interventions, each with a button that removes it.
import { textOf, timeOf, type Intervention } from "./interventions";
import { changesSettings } from "./live-settings";
import type { Scene } from "./scene";

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

export class InterventionList {
  private shown = "";
  private items: [HTMLElement, Intervention][] = [];

  constructor(private readonly remove: (intervention: Intervention) => void) {}

  /** Writes the list. Interventions after `now` are faint. */
  describe(scene: Scene, now: number): void {
    const { interventions } = scene;
    const key = JSON.stringify([interventions, scene.worlds.length]);
    if (key !== this.shown) {
      this.shown = key;
      by("interventions").hidden = interventions.length === 0;
      by("from-start").hidden = !interventions.some(changesSettings);
      const focused = this.items.findIndex(([item]) => item.contains(document.activeElement));
      this.items = interventions.map((one) => [this.item(one, scene.worlds.length > 1), one]);
      by("intervention-list").replaceChildren(...this.items.map(([item]) => item));
      // The focus remains in the list.
      if (focused >= 0) this.items[Math.min(focused, this.items.length - 1)]?.[0].querySelector("button")?.focus();
    }
    for (const [item, { at }] of this.items) item.classList.toggle("later", at > now + 1e-9);
  }

  private item(intervention: Intervention, several: boolean): HTMLElement {
    const text = `At ${timeOf(intervention)}: ${textOf(intervention, several)}`;
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: "Remove" });
    button.setAttribute("aria-label", `Remove: ${text}`);
    button.onclick = () => this.remove(intervention);
    item.append(text, button);
    return item;
  }
}
