// Numbers as text.

const PREFIXES = ["", "k", "M", "G", "T"];

export const count = (value: number): string => Math.round(value).toLocaleString("en");
/** Returns a number of things. */
export const number = (value: number, thing: string): string => `${count(value)} ${thing}${value === 1 ? "" : "s"}`;

/** Returns a quantity with a decimal prefix and three digits. */
export function scaled(value: number, unit: string): string {
  let place = 0;
  let rest = value;
  while (Math.abs(rest) >= 999.5 && place < PREFIXES.length - 1) [rest, place] = [rest / 1000, place + 1];
  const digits = place === 0 && Number.isInteger(rest) ? String(rest) : String(Number(rest.toPrecision(3)));
  return `${digits} ${PREFIXES[place]}${unit}`;
}

export const bytes = (value: number): string => scaled(value, "B");
export const rate = (bitsPerSecond: number): string => scaled(bitsPerSecond, "bit/s");
export const milliseconds = (value: number): string => `${Number(value.toPrecision(4))} ms`;
export const seconds = (value: number): string => `${value.toFixed(6)} s`;
/** Returns a duration in s with four digits. */
export const duration = (value: number): string => (value < 1 ? milliseconds(value * 1e3) : `${Number(value.toPrecision(4))} s`);
export const percent = (share: number): string => `${Number((share * 100).toPrecision(3))} %`;
