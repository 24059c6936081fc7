// Places in sorted columns.

/** Returns the place of the first value that is not smaller. */
export function firstAtOrAfter(values: readonly number[], value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
