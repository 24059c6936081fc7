// The squares of waiting packets in the box of a queue.

/** Largest and smallest side of a square in pixels, with its gap. */
const [LARGEST, SMALLEST] = [10, 1];
const STEP = 0.1;

export interface Grid {
  rows: number;
  columns: number;
  side: number;
  /** Distance of columns in pixels: a full queue fills the width of the box. */
  pitch: number;
  /** Packets that each square stands for. */
  each: number;
}

/** Returns the largest squares of which a box holds `limit` packets, each for one packet if they are large enough to see. */
export function gridOf(width: number, height: number, limit: number): Grid {
  const held = (side: number): number => Math.floor(width / side) * Math.floor(height / side);
  const each = Math.max(1, Math.ceil(limit / held(SMALLEST)));
  const count = Math.ceil(limit / each);
  let side = Math.max(SMALLEST, Math.min(LARGEST, Math.sqrt((width * height) / count)));
  while (side > SMALLEST && held(side) < count) side = Math.max(SMALLEST, side - STEP);
  const rows = Math.max(1, Math.floor(height / side));
  const columns = Math.ceil(count / rows);
  return { rows, columns, side, pitch: width / columns, each };
}
