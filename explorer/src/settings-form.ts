// The controls of a scene's settings and protocols.
import { isLive } from "./live-settings";
import { hasTarget } from "./network-keys";
import { familyOf, PROTOCOLS } from "./protocols";
import { RivalsForm } from "./rivals-form";
import { DEFAULT, MOST_WORLDS, type Scene } from "./scene";

const COUNTS = ["flows", "window", "ackEvery", "seed", "burst", "hops", "initialWindow"] as const;

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** The actions of the form. */
export interface SettingActions {
  /** Sets a setting. Returns whether its value is valid. */
  set(key: keyof Scene, value: string | number): Promise<boolean>;
  /** Takes the protocols over; `place` is that of the only change, or -1 if their number changes. */
  setWorlds(worlds: string[], place: number): void;
  /** Takes other senders of the measured flows, and other rivals, over. */
  setTogether(changes: Partial<Scene>): void;
}

export class SettingsForm {
  private readonly form = by<HTMLFormElement>("settings");
  private live = "";
  private worlds: readonly string[] = [];
  private readonly protocols = this.addProtocols();
  private readonly rivals: RivalsForm;

  constructor(private readonly actions: SettingActions) {
    this.rivals = new RivalsForm(actions.setTogether);
    this.form.onsubmit = (event) => event.preventDefault();
    this.form.onchange = ({ target }) => {
      const input = target as HTMLInputElement;
      const { name, value } = input;
      if (!name) return;
      const counted = COUNTS.some((count) => count === name);
      const set = actions.set(name as keyof Scene, counted ? Number(value) : value.trim());
      void set.then((valid) => input.setAttribute("aria-invalid", String(!valid)));
    };
  }

  /** Writes a scene into the controls. */
  fill(scene: Scene): void {
    for (const input of this.inputs) write(input, scene);
    const more = by<HTMLDetailsElement>("more");
    // A setting that is not the default is visible.
    more.open ||= [...this.inputs].some((input) => more.contains(input) && !isDefault(input, scene));
    this.live = liveOf(scene);
    this.fillProtocols(scene);
    this.rivals.fill(scene);
    this.showUsed(scene);
  }

  /** Writes the settings that changed while the scene runs. */
  update(scene: Scene): void {
    const live = liveOf(scene);
    if (live !== this.live) {
      this.live = live;
      for (const input of this.inputs) if (isLive(input.name) && input !== document.activeElement) write(input, scene);
    }
    if (scene.worlds.join() !== this.worlds.join()) this.fillProtocols(scene);
    this.rivals.fill(scene);
    this.showUsed(scene);
  }

  private get inputs(): NodeListOf<HTMLInputElement> {
    return this.form.querySelectorAll<HTMLInputElement>("[name]");
  }

  /** Hides the settings that the topology and the protocols do not use. */
  private showUsed({ topology, discipline, worlds, rivals }: Scene): void {
    const names = [...worlds, ...rivals.map(({ protocol }) => protocol)];
    const families = new Set(names.map(familyOf));
    const tcp = families.has("tcp") || families.has("mptcp");
    const uses: Record<string, boolean> = {
      "two-paths": topology === "two-paths",
      dumbbell: topology === "dumbbell",
      "parking-lot": topology === "parking-lot",
      tcp,
      arq: families.has("arq"),
      // Stop-and-wait has a window of one packet.
      window: names.some((name) => familyOf(name) === "arq" && name !== "stop-and-wait"),
      mptcp: families.has("mptcp"),
      target: hasTarget(discipline),
    };
    for (const part of document.querySelectorAll<HTMLElement>("[data-for]")) part.hidden = !uses[part.dataset["for"]!];
  }

  private fillProtocols({ worlds }: Scene): void {
    this.worlds = worlds;
    for (const [place, select] of this.protocols.entries()) select.value = worlds[place] ?? "";
  }

  private addProtocols(): HTMLSelectElement[] {
    return Array.from({ length: MOST_WORLDS }, (_, place) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.setAttribute("aria-label", `Protocol ${place + 1}`);
      if (place > 0) select.add(new Option("none", ""));
      for (const [name, { label: text }] of Object.entries(PROTOCOLS)) select.add(new Option(text, name));
      select.onchange = () => {
        const chosen = this.protocols.map(({ value }) => value).filter((value) => value !== "");
        this.actions.setWorlds(chosen, chosen.length === this.worlds.length && select.value !== "" ? place : -1);
      };
      label.append(select);
      by("protocols").append(label);
      return select;
    });
  }
}

function write(input: HTMLInputElement, scene: Scene): void {
  const value = scene[input.name as keyof Scene];
  // The default of an optional number is 0.
  input.removeAttribute("aria-invalid");
  input.value = value === 0 && input.placeholder === "default" ? "" : String(value);
}

function isDefault({ name }: HTMLInputElement, scene: Scene): boolean {
  const key = name as keyof Scene;
  return scene[key] === DEFAULT[key];
}

const liveOf = (scene: Scene): string => JSON.stringify(Object.entries(scene).filter(([key]) => isLive(key)));
