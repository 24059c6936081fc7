// The events of a trace as a list of which only the visible rows exist, so 300,000 events scroll like 30.
import type { Events } from "./events";
import { count, number, seconds } from "./format";
import { firstAtOrAfter } from "./search";
import { summaryOf } from "./summary";
import type { View } from "./view";

/** Height of a row in px, as in the style. */
const ROW = 24;
/** Rows above and below the visible ones. */
const EXTRA = 10;
/** Browsers limit the height of an element. */
const MOST_ROWS = 500_000;
const WAIT_MS = 150;

interface Parts {
  list: HTMLElement;
  names: HTMLSelectElement;
  text: HTMLInputElement;
  shown: HTMLElement;
  details: HTMLElement;
}

export class EventTable {
  private events?: Events | undefined;
  /** Rows of the trace that are listed. */
  private rows: number[] = [];
  private chosen = -1;
  private readonly space = document.createElement("div");
  private later?: ReturnType<typeof setTimeout>;

  constructor(
    private readonly parts: Parts,
    private readonly view: View,
  ) {
    const { list, names, text } = parts;
    this.space.setAttribute("role", "presentation");
    list.append(this.space);
    list.addEventListener("scroll", () => this.draw());
    list.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("click", (event) => {
      const row = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
      if (row) this.choose(Number(row.dataset["row"]));
    });
    names.addEventListener("change", () => this.filter());
    text.addEventListener("input", () => this.soon());
    view.onChange(() => this.soon());
    new ResizeObserver(() => this.draw()).observe(list);
  }

  show(events: Events | undefined): void {
    this.events = events;
    this.chosen = -1;
    this.parts.details.textContent = "Choose an event for its fields.";
    const { names, text } = this.parts;
    text.value = "";
    names.replaceChildren(new Option("All names", ""));
    const order = (events?.names ?? []).map((name, kind) => ({ name, kind })).sort((one, other) => one.name.localeCompare(other.name));
    for (const { name, kind } of order) names.add(new Option(`${name} (${count(events!.counts[kind]!)})`, String(kind)));
    this.filter();
  }

  /** Chooses the listed event that is nearest to a time in s. */
  chooseNear(time: number): void {
    const { rows, events } = this;
    if (events === undefined || rows.length === 0) return;
    const after = rows.findIndex((row) => events.times[row]! >= time);
    const place = after < 0 ? rows.length - 1 : after;
    const earlier = place > 0 && time - events.times[rows[place - 1]!]! < events.times[rows[place]!]! - time;
    this.choose(rows[earlier ? place - 1 : place]!, true);
  }

  private soon(): void {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.filter(), WAIT_MS);
  }

  private filter(): void {
    clearTimeout(this.later);
    const { events, parts } = this;
    this.rows = [];
    let found = 0;
    if (events !== undefined) {
      const kind = parts.names.value === "" ? undefined : Number(parts.names.value);
      const text = parts.text.value.trim().toLowerCase();
      const [from, to] = this.view.range;
      for (let row = firstAtOrAfter(events.times, from); row < events.length && events.times[row]! <= to; row++) {
        if (kind !== undefined && events.kinds[row] !== kind) continue;
        if (text !== "" && !events.texts[row]!.toLowerCase().includes(text)) continue;
        if (++found <= MOST_ROWS) this.rows.push(row);
      }
    }
    const limited = found > MOST_ROWS ? `; the list has the first ${count(MOST_ROWS)}` : "";
    parts.shown.textContent = `${count(found)} of ${number(events?.length ?? 0, "event")}${limited}`;
    this.space.style.height = `${this.rows.length * ROW}px`;
    parts.list.scrollTop = 0;
    this.draw();
  }

  private draw(): void {
    const { list } = this.parts;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - EXTRA);
    const last = Math.min(this.rows.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + EXTRA);
    this.space.replaceChildren(...this.rows.slice(first, last).map((row, place) => this.option(row, first + place)));
    const chosen = this.space.querySelector('[aria-selected="true"]');
    if (chosen) list.setAttribute("aria-activedescendant", chosen.id);
    else list.removeAttribute("aria-activedescendant");
  }

  private option(row: number, place: number): HTMLElement {
    const event = this.events!.at(row);
    const option = document.createElement("div");
    option.id = `event-${row}`;
    option.dataset["row"] = String(row);
    option.style.top = `${place * ROW}px`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", String(row === this.chosen));
    option.setAttribute("aria-posinset", String(place + 1));
    option.setAttribute("aria-setsize", String(this.rows.length));
    for (const text of [seconds(event.time), event.name, summaryOf(event)]) {
      const cell = document.createElement("span");
      cell.textContent = text;
      option.append(cell, " ");
    }
    return option;
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.parts.list.clientHeight / ROW) - 1);
    const step: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    const by = step[event.key];
    if (by === undefined || this.rows.length === 0) return;
    event.preventDefault();
    const before = this.rows.indexOf(this.chosen);
    const place = before < 0 ? (by === Infinity ? this.rows.length - 1 : 0) : Math.min(this.rows.length - 1, Math.max(0, before + by));
    this.choose(this.rows[place]!, true);
  }

  private choose(row: number, scroll = false): void {
    const { list, details } = this.parts;
    this.chosen = row;
    if (scroll) {
      const top = this.rows.indexOf(row) * ROW;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    }
    this.draw();
    details.textContent = JSON.stringify(JSON.parse(this.events!.texts[row]!), null, 2);
  }
}
