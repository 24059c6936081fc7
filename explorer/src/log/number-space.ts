// Packets of one packet number space, and which of them ACKs cover.

/** Points of a chart: times in s, places, and the rows of their events. */
export interface Points {
  time: number[];
  y: number[];
  row: number[];
}

export const noPoints = (): Points => ({ time: [], y: [], row: [] });

export function addPoint({ time, y, row }: Points, at: number, place: number, event: number): void {
  time.push(at);
  y.push(place);
  row.push(event);
}

export class NumberSpace {
  readonly sent = noPoints();
  readonly received = noPoints();
  readonly acknowledged = noPoints();
  readonly lost = noPoints();
  /** Packets declared lost that an ACK covered, before or after. */
  spurious = 0;
  /** Sent packets whose number an earlier one had. */
  repeated = 0;
  /** Sent numbers in ascending order, with the time of each, and whether it elicits an ACK. */
  private readonly numbers: number[] = [];
  private readonly sentAt: number[] = [];
  private readonly eliciting: boolean[] = [];
  /** For each place in `numbers` a place at or after it: following them leads to the next one without an ACK. */
  private readonly next: number[] = [0];
  private largest = -1;
  private readonly declared = new Set<number>();

  constructor(readonly name: string) {}

  send(time: number, number: number, eliciting: boolean, row: number): void {
    addPoint(this.sent, time, number, row);
    const place = number > (this.numbers.at(-1) ?? -1) ? this.numbers.length : this.placeOf(number);
    if (this.numbers[place] === number) {
      this.repeated++;
      return;
    }
    this.numbers.splice(place, 0, number);
    this.sentAt.splice(place, 0, time);
    this.eliciting.splice(place, 0, eliciting);
    if (place === this.numbers.length - 1) this.next.push(this.numbers.length);
    else {
      // Places after it move by one.
      for (let other = 0; other < this.next.length; other++) if (other >= place || this.next[other]! > place) this.next[other]!++;
      this.next.splice(place, 0, place);
    }
  }

  /** Acknowledges a range of numbers. Returns the RTT in s if the largest of them is the largest so far. */
  acknowledge(time: number, from: number, to: number, row: number): number | undefined {
    let rtt: number | undefined;
    let place = this.unacknowledged(this.placeOf(from));
    while (place < this.numbers.length && this.numbers[place]! <= to) {
      const number = this.numbers[place]!;
      addPoint(this.acknowledged, time, number, row);
      if (this.declared.has(number)) this.spurious++;
      if (number === to && to > this.largest && this.eliciting[place]) rtt = time - this.sentAt[place]!;
      this.next[place] = place + 1;
      place = this.unacknowledged(place + 1);
    }
    this.largest = Math.max(this.largest, to);
    return rtt;
  }

  lose(time: number, number: number, row: number): void {
    addPoint(this.lost, time, number, row);
    this.declared.add(number);
    const place = this.placeOf(number);
    if (this.numbers[place] === number && this.next[place] !== place) this.spurious++;
  }

  /** Returns the packets that elicit an ACK and have none, although a later packet has one, at the times at which they were sent. */
  get unanswered(): Points {
    const found = noPoints();
    for (let place = this.unacknowledged(0); place < this.numbers.length; place = this.unacknowledged(place + 1)) {
      if (this.numbers[place]! < this.largest && this.eliciting[place]) addPoint(found, this.sentAt[place]!, this.numbers[place]!, -1);
    }
    return found;
  }

  /** Returns the place of the first number that is not smaller. */
  private placeOf(number: number): number {
    let [low, high] = [0, this.numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.numbers[middle]! < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the first place from `place` on without an ACK, and shortens the way to it. */
  private unacknowledged(place: number): number {
    let end = place;
    while (this.next[end] !== undefined && this.next[end] !== end) end = this.next[end]!;
    for (let step = place; step !== end; ) {
      const following = this.next[step]!;
      this.next[step] = end;
      step = following;
    }
    return end;
  }
}
