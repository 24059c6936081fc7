// Quantities with units, as in study files.
import { type Dimension, type Unit, UNITS } from "./units";

const DIMENSIONS: Readonly<Record<string, readonly Dimension[]>> = {
  rate: ["rate"],
  delay: ["duration"],
  jitter: ["duration"],
  loss: ["proportion"],
  queue: ["packets", "size"],
  size: ["size"],
  minRto: ["duration"],
  delayedAck: ["duration"],
  rto: ["duration"],
  ackDelay: ["duration"],
  target: ["duration"],
  startJitter: ["duration"],
};

const QUANTITY = /^\s*([\d.]+)\s*([^\s\d.]+)\s*$/;

/** Returns whether a queue limit is a number of packets, not of bytes. */
export function isPackets(text: string): boolean {
  const name = QUANTITY.exec(text)?.[2];
  return UNITS.packets.some((one) => one.unit === name);
}

/** Returns a quantity in its base unit, or throws with the allowed units. */
export function quantity(key: string, text: string): number {
  const [, digits, name] = QUANTITY.exec(text) ?? [];
  const units = (DIMENSIONS[key] ?? []).flatMap((dimension): readonly Unit[] => UNITS[dimension]);
  const unit = units.find((one) => one.unit === name);
  if (!digits || !unit || Number.isNaN(Number(digits))) {
    const listed = units.filter((one) => !one.alias).map((one) => one.unit);
    throw new Error(`${key}: "${text}" is not a number with a unit (${listed.join(", ")})`);
  }
  return Number(digits) * unit.scale;
}
