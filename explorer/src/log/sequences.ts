// Sequence numbers of a TCP connection in both directions.
import { numberOf } from "./fields";
import { addPoint, noPoints, type Points } from "./number-space";

export interface Segment {
  time: number;
  sequence: number;
  length: number;
  again: boolean;
  row: number;
}

/** Points with a height. */
export interface Ranges extends Points {
  top: number[];
}

const noRanges = (): Ranges => ({ ...noPoints(), top: [] });

function addRange(ranges: Ranges, time: number, from: number, to: number, row: number): void {
  addPoint(ranges, time, from, row);
  ranges.top.push(to);
}

/** Data in one direction, and its acknowledgements in the other. */
export class Stream {
  readonly data = noRanges();
  readonly retransmitted = noRanges();
  readonly acknowledged = noPoints();
  readonly sacked = noRanges();

  get segments(): number {
    return this.data.time.length + this.retransmitted.time.length;
  }

  /** Returns the bytes that are acknowledged. */
  get acknowledgedBytes(): number {
    return Math.max(0, (this.acknowledged.y.at(-1) ?? 1) - 1);
  }
}

export class Sequences {
  readonly sent = new Stream();
  readonly received = new Stream();
  /** Segments without an acknowledgement in the order of their numbers. */
  private outstanding: { end: number; time: number; again: boolean }[] = [];
  private first = 0;

  data(direction: "sent" | "received", { time, sequence, length, again, row }: Segment): void {
    const stream = this[direction];
    addRange(again ? stream.retransmitted : stream.data, time, sequence, sequence + length, row);
    if (direction === "received") return;
    if (!again) this.outstanding.push({ end: sequence + length, time, again });
    else {
      // The RTT of a retransmitted segment is ambiguous (RFC 6298, section 3).
      for (let place = this.first; place < this.outstanding.length; place++) {
        const one = this.outstanding[place]!;
        if (one.end > sequence + length) break;
        if (one.end > sequence) one.again = true;
      }
    }
  }

  /** An acknowledgement in a sent or received segment. Returns an RTT in s if it covers a new segment that was sent once. */
  acknowledge(direction: "sent" | "received", time: number, number: number, sack: readonly unknown[], row: number): number | undefined {
    const stream = direction === "received" ? this.sent : this.received;
    const before = stream.acknowledged.y.at(-1) ?? -Infinity;
    if (number > before) addPoint(stream.acknowledged, time, number, row);
    for (const block of sack) {
      const [from, to] = Array.isArray(block) ? block.map(numberOf) : [];
      if (from !== undefined && to !== undefined && to > number) addRange(stream.sacked, time, from, to, row);
    }
    if (direction === "sent") return undefined;
    if (sack.length > 0) this.exclude(sack[0]);
    let rtt: number | undefined;
    while (this.first < this.outstanding.length && this.outstanding[this.first]!.end <= number) {
      const one = this.outstanding[this.first++]!;
      rtt = one.again ? undefined : time - one.time;
    }
    return rtt;
  }

  /** Excludes segments of the latest SACK block from later RTTs: they arrived before. */
  private exclude(block: unknown): void {
    const [from, to] = Array.isArray(block) ? block.map(numberOf) : [];
    if (from === undefined || to === undefined) return;
    let [low, high] = [this.first, this.outstanding.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.outstanding[middle]!.end <= to) low = middle + 1;
      else high = middle;
    }
    for (let place = low - 1; place >= this.first; place--) {
      const one = this.outstanding[place]!;
      if (one.end <= from || one.again) break;
      one.again = true;
    }
  }
}
