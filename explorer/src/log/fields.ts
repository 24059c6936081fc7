// Values of JSON objects whose fields may be missing or have another type.

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns an object, or one without fields. */
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

/** Returns a number; logs write large ones as text. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Returns the first number of these fields. */
export function firstNumber(fields: Fields, ...names: readonly string[]): number | undefined {
  for (const name of names) {
    const found = numberOf(fields[name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns a text that is not empty. */
export const textOf = (value: unknown): string | undefined => (typeof value === "string" && value.trim() !== "" ? value.trim() : undefined);

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
