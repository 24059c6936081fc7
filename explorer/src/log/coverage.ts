// Which bytes of a stream a log has already seen.

export class Coverage {
  private end = 0;
  /** Parts below the end that are missing, in their order. */
  private readonly holes: [number, number][] = [];

  /** Adds a part, and returns how many of its bytes are new. */
  add(from: number, to: number): number {
    const before = this.end;
    let fresh = 0;
    if (to > before) {
      if (from > before) this.holes.push([before, from]);
      fresh = to - Math.max(from, before);
      this.end = to;
    }
    return from < before ? fresh + this.fill(from, Math.min(to, before)) : fresh;
  }

  /** Removes a part from the holes, and returns how many bytes of it were missing. */
  private fill(from: number, to: number): number {
    let [low, high] = [0, this.holes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.holes[middle]![1] <= from) low = middle + 1;
      else high = middle;
    }
    let filled = 0;
    const rest: [number, number][] = [];
    let next = low;
    for (; next < this.holes.length && this.holes[next]![0] < to; next++) {
      const [start, end] = this.holes[next]!;
      filled += Math.min(end, to) - Math.max(start, from);
      if (start < from) rest.push([start, from]);
      if (end > to) rest.push([to, end]);
    }
    if (next > low) this.holes.splice(low, next - low, ...rest);
    return filled;
  }
}
