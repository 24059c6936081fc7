// Values of a study file, with errors that name their key.

export type Table = Record<string, unknown>;

export function refuse(key: string, reason = "the explorer cannot show this key"): never {
  throw new Error(`${key}: ${reason}`);
}

export function table(key: string, value: unknown): Table {
  if (value === undefined) refuse(key, "the key is missing");
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(key, "expected a table");
  return value as Table;
}

export function string(key: string, value: unknown): string {
  if (typeof value === "string") return value;
  return refuse(key, typeof value === "object" ? "the explorer cannot show this table" : "expected a text with a unit");
}

export function integer(key: string, value: unknown): number {
  return typeof value === "number" ? value : refuse(key, "expected a number");
}

/** The parts of a study that the page leaves out, because it can show the rest without them. */
export class Omissions {
  private readonly keys: string[] = [];
  private readonly reasons: string[] = [];

  /** Leaves keys out. */
  add(...keys: readonly string[]): void {
    this.keys.push(...keys);
  }

  /** Leaves an entry of a list out if `work` throws, and keeps its reason. */
  unless<T>(work: () => T): T[] {
    try {
      return [work()];
    } catch (error) {
      this.reasons.push(error instanceof Error ? error.message : String(error));
      return [];
    }
  }

  /** Returns the first reason; nothing without one. */
  get reason(): string | undefined {
    return this.reasons[0];
  }

  /** Returns sentences that name all of them. */
  get notes(): string[] {
    const keys = this.keys.length > 0 ? [`The page cannot show these keys and leaves them out: ${this.keys.join(", ")}.`] : [];
    return [...keys, ...this.reasons.map((reason) => `Left out: ${reason}.`)];
  }
}
