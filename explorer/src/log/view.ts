// The period that charts and table show.

export type Range = readonly [number, number];

export class View {
  private shown: Range = [0, 1];
  private all: Range = [0, 1];
  private readonly listeners: ((range: Range) => void)[] = [];

  get range(): Range {
    return this.shown;
  }

  get whole(): Range {
    return this.all;
  }

  get zoomed(): boolean {
    return this.shown !== this.all;
  }

  onChange(listener: (range: Range) => void): void {
    this.listeners.push(listener);
  }

  /** Starts with a trace. */
  reset([from, to]: Range): void {
    this.all = to > from ? [from, to] : [from, from + 1e-3];
    this.showAll();
  }

  showAll(): void {
    this.set(this.all);
  }

  /** Shows a period, limited to the trace; an empty one changes nothing. */
  zoom(from: number, to: number): void {
    const range: Range = [Math.max(this.all[0], from), Math.min(this.all[1], to)];
    this.set(range[1] > range[0] ? range : this.shown);
  }

  private set(range: Range): void {
    this.shown = range;
    for (const listener of this.listeners) listener(range);
  }
}
