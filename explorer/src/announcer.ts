// Events for screen readers: a live region with the latest sentences, at a pace that can be read.
import { milliseconds, type Sentence } from "./narrative";

const PAUSED_MS = 300;
const PLAYING_MS = 5000;
const MOST = 3;

/** A sentence and the configuration that it is about. */
export interface Announced {
  label: string;
  sentence: Sentence;
}

export class Announcer {
  private readonly known = new WeakSet<Sentence>();
  private last = 0;
  private later?: ReturnType<typeof setTimeout>;

  constructor(private readonly region: HTMLElement) {}

  /** Announces the new ones of `latest`, the newest first, as soon as the pace allows. */
  update(latest: readonly Announced[], playing: boolean): void {
    clearTimeout(this.later);
    const wait = this.last + (playing ? PLAYING_MS : PAUSED_MS) - performance.now();
    if (wait <= 0) this.announce(latest);
    else this.later = setTimeout(() => this.announce(latest), wait);
  }

  private announce(latest: readonly Announced[]): void {
    const fresh = latest.filter(({ sentence }) => !this.known.has(sentence));
    if (fresh.length === 0) return;
    this.last = performance.now();
    for (const { sentence } of fresh) this.known.add(sentence);
    const shown = fresh.slice(0, MOST).reverse();
    const texts = shown.map(({ label, sentence }) => `${label}, ${milliseconds(sentence.time)}: ${sentence.text}`);
    const more = fresh.length - shown.length;
    this.region.textContent = [...(more > 0 ? [`${more} earlier events.`] : []), ...texts].join(" ");
  }
}
