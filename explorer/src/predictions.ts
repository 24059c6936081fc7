// Closed forms next to the measurement. The project's theory is in Python, so only the page of longfat explore has it.
import type { Spec } from "./engine";

/** A prediction: its value, or a bound, and the name and assumptions of the form. */
export interface Prediction {
  value: number | null;
  exact: boolean;
  note: string;
  bound: number | null;
  forms: Record<string, number>;
}

export interface Theory {
  goodput: Prediction;
  queue: Prediction;
  /** The bandwidth-delay product in packets. */
  pipe: number | null;
}

/** Requests the theory for a specification; null where the page has none. */
export type TheorySource = (spec: Spec) => Promise<Theory | null>;

/** Difference up to which measurement and closed form agree. */
const CLOSE = 0.05;

/** The latest prediction for each specification. */
export class Predictions {
  private readonly found = new Map<string, Theory | null>();

  /** `arrived` is called after each answer of `source`. */
  constructor(
    private readonly source: TheorySource | undefined,
    private readonly arrived: () => void,
  ) {}

  /** Whether this page has predictions. */
  get available(): boolean {
    return this.source !== undefined;
  }

  /** Returns the theory, or null until it is known. */
  of(spec: Spec): Theory | null {
    const key = JSON.stringify(spec);
    if (!this.found.has(key) && this.source) {
      this.found.set(key, null);
      // A server that has ended shows as the error of the next step.
      this.source(spec).then(
        (theory) => {
          this.found.set(key, theory);
          this.arrived();
        },
        () => undefined,
      );
    }
    return this.found.get(key) ?? null;
  }
}

/** Returns a sentence that compares a measurement with a prediction, both in bit/s. */
export function comparison(measured: number | null, { value, bound, note }: Prediction): string {
  if (value === null && bound === null) return `${upper(note)}.`;
  const limit = value ?? bound!;
  const text = `${(limit / 1e6).toFixed(2)} Mbit/s (${note})`;
  if (measured === null || limit <= 0) return `Theory: ${text}.`;
  const ratio = measured / limit - 1;
  const percent = `${Math.abs(ratio * 100).toFixed(0)} %`;
  if (value === null) return `Goodput is at ${(100 * (1 + ratio)).toFixed(0)} % of ${text}.`;
  if (Math.abs(ratio) <= CLOSE) return `Goodput agrees with theory within 5 %: ${text}.`;
  const side = ratio < 0 ? "below" : "above";
  return `Goodput is ${percent} ${side} theory: ${text}. The form is the mean in steady state.`;
}

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
