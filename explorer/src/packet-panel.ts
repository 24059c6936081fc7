// The chosen packet: its history, and the button that drops it.
import type { TraceEvent } from "./engine";
import { historyOf } from "./history";
import type { World } from "./world";

export interface Choice {
  world: World;
  event: TraceEvent;
}

export class PacketPanel {
  private choice: Choice | undefined;
  private shown = "";

  constructor(
    private readonly hint: HTMLElement,
    private readonly list: HTMLElement,
    private readonly button: HTMLButtonElement,
    drop: (choice: Choice) => void,
  ) {
    button.onclick = () => this.choice && drop(this.choice);
  }

  get chosen(): TraceEvent | undefined {
    return this.choice?.event;
  }

  choose(choice: Choice | undefined): void {
    this.choice = choice;
    this.describe();
  }

  /** Drops the chosen packet if it is on the path. Returns whether it is. */
  press(): boolean {
    const possible = !this.button.hidden;
    if (possible) this.button.click();
    return possible;
  }

  /** Writes the history so far. */
  describe(): void {
    const { choice } = this;
    this.hint.hidden = choice !== undefined;
    const packet = choice?.event.id === undefined ? undefined : choice.world.packets.inside.get(choice.event.id);
    this.button.hidden = packet === undefined || packet.condemned === true;
    const lines = choice ? historyOf(choice.world, choice.event) : [];
    const text = lines.join("\n");
    if (text === this.shown) return;
    this.shown = text;
    this.list.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  }
}
