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
