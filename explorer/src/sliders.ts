// Sliders of the path's rate, delay, loss and queue. They set the same settings as the text fields.
import { isPackets, quantity } from "./quantities";
import type { Scene } from "./scene";

type Key = "rate" | "delay" | "loss" | "queue";

interface Slider {
  key: Key;
  label: string;
  low: number;
  high: number;
  /** Returns the setting of a position, and the position of a setting in its base unit. */
  text(position: number): string;
  position(value: number): number;
}

const rounded = (value: number): number => Number(value.toPrecision(2));

/** Positions are exponents of 10, except those of the loss, which are square roots: it starts at 0. */
const SLIDERS: readonly Slider[] = [
  {
    key: "rate",
    label: "Rate",
    low: 5,
    high: 9,
    text: (position) => {
      const value = rounded(10 ** position);
      return value < 1e6 ? `${value / 1e3}kbit/s` : `${value / 1e6}Mbit/s`;
    },
    position: (value) => Math.log10(value),
  },
  {
    key: "delay",
    label: "Delay",
    low: -1,
    high: 3,
    text: (position) => `${rounded(10 ** position)}ms`,
    position: (value) => Math.log10(Math.max(1e-4, value) * 1e3),
  },
  {
    key: "loss",
    label: "Loss",
    low: 0,
    high: 0.5,
    text: (position) => `${rounded(position ** 2 * 100)}%`,
    position: (value) => Math.sqrt(value),
  },
  {
    key: "queue",
    label: "Queue",
    low: 0,
    high: 3.5,
    text: (position) => `${Math.round(rounded(10 ** position))}pkt`,
    position: (value) => Math.log10(Math.max(1, value)),
  },
];

export class Sliders {
  private readonly inputs = new Map<Key, { slider: Slider; input: HTMLInputElement; output: HTMLOutputElement }>();

  /** `set` sets a setting. */
  constructor(parent: HTMLElement, set: (key: Key, value: string) => void) {
    for (const slider of SLIDERS) {
      const { key, low, high } = slider;
      const label = document.createElement("label");
      const output = document.createElement("output");
      const input = Object.assign(document.createElement("input"), { type: "range", min: `${low}`, max: `${high}`, step: "any" });
      input.dataset["slider"] = key;
      label.append(`${slider.label} `, output, input);
      // Each change is an intervention, so it applies when the slider is released.
      input.oninput = () => {
        const text = slider.text(Number(input.value));
        output.textContent = text;
        input.setAttribute("aria-valuetext", text);
      };
      input.onchange = () => set(key, slider.text(Number(input.value)));
      parent.append(label);
      this.inputs.set(key, { slider, input, output });
    }
  }

  /** Writes the settings into the sliders. A queue in bytes has no slider. */
  update(scene: Scene): void {
    for (const [key, { slider, input, output }] of this.inputs) {
      if (input.matches(":active")) continue;
      const text = scene[key];
      input.disabled = key === "queue" && !isPackets(text);
      if (output.textContent === text) continue;
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
      if (!input.disabled) input.value = String(slider.position(quantity(key, text)));
    }
  }
}
