// The time line: shows the present time, and moves the scene to another one. Earlier times are simulated again from the start,
// with all interventions; the same seed gives the same packets.

/** Virtual seconds that the time line has at the start. */
const SHORTEST_S = 2;

export class Timeline {
  private readonly input = document.getElementById("timeline") as HTMLInputElement;
  private reached = SHORTEST_S;

  /** `seek` moves the scene to a time in s. */
  constructor(seek: (time: number) => void) {
    this.input.oninput = () => this.input.setAttribute("aria-valuetext", `${Number(this.input.value).toFixed(3)} s`);
    this.input.onchange = () => seek(Number(this.input.value));
  }

  /** Starts anew, for another scene. */
  reset(): void {
    this.reached = SHORTEST_S;
  }

  update(now: number): void {
    this.reached = Math.max(this.reached, now);
    this.input.max = String(this.reached);
    if (this.input.matches(":active")) return;
    this.input.value = String(now);
    this.input.setAttribute("aria-valuetext", `${now.toFixed(3)} s`);
  }
}
