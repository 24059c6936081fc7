// The tour: five steps at the first visit, and whenever it is requested.

const SEEN = "longfat-explorer-tour";

const STEPS: readonly { at: string; text: string }[] = [
  { at: "#worlds", text: "The path. Data packets cross it to the right, ACKs return to the left. Packets wait in the queue in front of the slow link." },
  { at: "#quick", text: "Move a slider, or drag the edge of the queue or the receiver: the link changes at once, while packets travel. The list of interventions keeps each change." },
  { at: "#playback", text: "Play, step, or jump to the next loss. Drag the time line to look at an earlier moment." },
  { at: "#charts", text: "The charts show the window, the RTT, the queue and the goodput of the same packets." },
  { at: "#events", text: "Each loss, timeout and retransmission has a sentence with its rule. Click it, or click a packet, for the packet's history." },
];

export class Tour {
  private readonly box = document.getElementById("tour")!;
  private readonly text = document.getElementById("tour-text")!;
  private readonly next = document.getElementById("tour-next") as HTMLButtonElement;
  private step = 0;

  constructor() {
    this.next.onclick = () => this.show(this.step + 1);
    document.getElementById("tour-close")!.onclick = () => this.close();
    document.getElementById("start-tour")!.onclick = () => {
      this.show(0);
      this.next.focus();
    };
    this.box.onkeydown = ({ key }) => {
      if (key === "Escape") this.close();
    };
  }

  /** Starts at the first visit. A browser without storage shows no tour by itself. */
  startOnce(): void {
    try {
      if (localStorage.getItem(SEEN)) return;
      localStorage.setItem(SEEN, "1");
    } catch {
      return;
    }
    this.show(0);
  }

  private show(step: number): void {
    this.mark(false);
    this.step = step;
    if (step >= STEPS.length) return this.close();
    this.box.hidden = false;
    this.text.textContent = `${step + 1} of ${STEPS.length}. ${STEPS[step]!.text}`;
    this.next.textContent = step + 1 < STEPS.length ? "Next" : "Done";
    this.mark(true);
    const element = document.querySelector(STEPS[step]!.at);
    if (step > 0) element?.scrollIntoView({ block: "nearest" });
  }

  private close(): void {
    this.mark(false);
    this.box.hidden = true;
  }

  private mark(on: boolean): void {
    const step = STEPS[this.step];
    if (step) document.querySelector(step.at)?.classList.toggle("toured", on);
  }
}
