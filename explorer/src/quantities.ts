// Quantities with units, as in study files.

const UNITS: Readonly<Record<string, number>> = {
  "bit/s": 1,
  "kbit/s": 1e3,
  "Mbit/s": 1e6,
  "Gbit/s": 1e9,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  "%": 0.01,
  pkt: 1,
  B: 1,
  kB: 1e3,
  KiB: 1024,
  MB: 1e6,
};

const TIMES = ["us", "ms", "s"];
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  rate: ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"],
  delay: TIMES,
  jitter: TIMES,
  loss: ["%"],
  queue: ["pkt", "B", "kB", "KiB", "MB"],
  size: ["B", "kB", "MB"],
  minRto: TIMES,
  delayedAck: TIMES,
  rto: TIMES,
  ackDelay: TIMES,
};

/** Returns a quantity in its base unit, or throws with the allowed units. */
export function quantity(key: string, text: string): number {
  const [, digits, unit] = /^\s*([\d.]+)\s*([A-Za-z%/]+)\s*$/.exec(text) ?? [];
  const units = ALLOWED[key] ?? [];
  if (!digits || !unit || !units.includes(unit) || Number.isNaN(Number(digits))) {
    throw new Error(`${key}: "${text}" is not a number with a unit (${units.join(", ")})`);
  }
  return Number(digits) * UNITS[unit]!;
}
