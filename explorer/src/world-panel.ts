// The panel of one world: its path, its ladder diagram, and measurement next to theory.
import type { TraceEvent } from "./engine";
import { delayIn, handleAt, handlesOf, type Handle, type HandleKey } from "./handles";
import { drawLadder, nearestLine } from "./ladder-canvas";
import { heightOf, leastWidthOf } from "./layout";
import { milliseconds } from "./narrative";
import { choosePacketsByKeys } from "./packet-keys";
import { flowColour, worldColour } from "./palette";
import { drawPath, pathLayout } from "./path-canvas";
import { comparison, type Prediction, type Predictions } from "./predictions";
import { STREAM_HEIGHT } from "./stream-canvas";
import { PROTOCOLS } from "./protocols";
import { changesSettings } from "./live-settings";
import { flowsOf } from "./network-keys";
import { isPackets, quantity } from "./quantities";
import { specOf, type Scene } from "./scene";
import { theoryOf, type Theory } from "./theory";
import { last, type World } from "./world";

/** Disciplines with several queues, drawn with one row for each flow. */
const BY_FLOW = ["fq-codel", "dualpi2", "cake"];
const NEAR = 14;
const MEASURED_S = 2;
/** Limit of the flows in the legend. */
const MOST_LISTED = 12;

export class WorldPanel {
  readonly element: HTMLElement;
  private readonly path: HTMLCanvasElement;
  private readonly ladder: HTMLCanvasElement;
  private readonly details: HTMLDetailsElement;
  private readonly figures: HTMLElement;
  private readonly summary: HTMLElement;
  private readonly body: HTMLTableSectionElement;
  private readonly title: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly sentence: HTMLElement;
  /** Text of the legend. */
  private listed = "";
  private handles: Handle[] = [];
  private dragged: { handle: Handle; value: string } | undefined;
  /** Whether the pointer has moved a handle since its last press. */
  private moved = false;
  private redraw = (): void => undefined;
  private spots: ReturnType<typeof drawPath> = [];
  private lines: ReturnType<typeof drawLadder> = [];

  constructor(
    readonly world: World,
    private readonly place: number,
    private readonly predictions: Predictions,
    choose: (world: World, event: TraceEvent, byKey?: boolean) => void,
    private readonly set: (key: HandleKey, value: string) => void,
  ) {
    this.element = document.createElement("article");
    this.element.className = "world";
    this.element.style.setProperty("--colour", `var(--world-${place + 1})`);
    this.element.innerHTML = `<h2></h2><ul class="legend" aria-label="Flows" hidden></ul><div class="scroll"><canvas class="path" role="application"></canvas></div><p class="figures"></p>
      <details><summary>Ladder diagram</summary><canvas class="ladder" role="application"></canvas></details>
      <details class="numbers"><summary>Numbers and theory</summary><table><thead><tr><th scope="col">quantity</th><th scope="col">measured</th><th scope="col">theory</th></tr></thead><tbody></tbody></table>
      <p class="theory"></p></details>`;
    this.title = this.element.querySelector("h2")!;
    this.title.textContent = world.label;
    this.legend = this.element.querySelector("ul.legend")!;
    this.path = this.element.querySelector("canvas.path")!;
    this.ladder = this.element.querySelector("canvas.ladder")!;
    this.details = this.element.querySelector("details")!;
    this.figures = this.element.querySelector("p.figures")!;
    this.summary = this.element.querySelector("summary")!;
    this.body = this.element.querySelector("tbody")!;
    this.sentence = this.element.querySelector("p.theory")!;
    this.path.style.height = `${heightOf(world.network) + STREAM_HEIGHT + 10}px`;
    this.path.style.minWidth = `${leastWidthOf(world.network)}px`;
    this.listenForDrags();
    this.path.onclick = ({ offsetX, offsetY }) => {
      if (this.moved) return;
      const distance = (spot: { x: number; y: number }): number => Math.hypot(spot.x - offsetX, spot.y - offsetY);
      const nearest = [...this.spots].sort((a, b) => distance(a) - distance(b))[0];
      if (nearest && distance(nearest) < NEAR) choose(world, nearest.packet.event);
    };
    const chosen = (event: TraceEvent): void => choose(world, event, true);
    // Data from left to right, then ACKs.
    const order = ({ x, y }: { x: number; y: number }): number => Math.round(y) * 1e5 + x;
    choosePacketsByKeys(this.path, () => this.spots.map((spot) => ({ event: spot.packet.event, order: order(spot) })), chosen);
    const events = (): TraceEvent[] => [...new Set(this.lines.map(({ event }) => event))];
    choosePacketsByKeys(this.ladder, () => events().map((event) => ({ event, order: event.time })), chosen);
    this.ladder.onclick = ({ offsetX, offsetY }) => {
      const event = nearestLine(this.lines, offsetX, offsetY);
      if (event) choose(world, event);
    };
  }

  /** Whether the ladder diagram is open. */
  get open(): boolean {
    return this.details.open;
  }

  set open(on: boolean) {
    this.details.open = on;
  }

  /** Lets the reader drag handles: the setting changes at the end. */
  private listenForDrags(): void {
    const { path } = this;
    let shift = 0;
    path.addEventListener("pointerdown", ({ offsetX, offsetY, pointerId }) => {
      const handle = handleAt(this.handles, offsetX, offsetY);
      this.moved = false;
      if (!handle) return;
      path.setPointerCapture(pointerId);
      shift = handle.x - offsetX;
      this.dragged = { handle, value: handle.text(handle.x) };
    });
    path.addEventListener("pointermove", ({ offsetX, offsetY }) => {
      const { dragged } = this;
      path.style.cursor = dragged || handleAt(this.handles, offsetX, offsetY) ? "ew-resize" : "";
      if (!dragged) return;
      this.moved = true;
      dragged.value = dragged.handle.text(offsetX + shift);
      this.redraw();
    });
    path.addEventListener("pointerup", () => {
      const { dragged, moved } = this;
      this.dragged = undefined;
      if (dragged && moved) this.set(dragged.handle.key, dragged.value);
      this.redraw();
    });
    path.addEventListener("pointercancel", () => {
      this.dragged = undefined;
      this.redraw();
    });
  }

  draw(given: Scene, packets: boolean, chosen: TraceEvent | undefined): void {
    this.redraw = () => this.draw(given, packets, chosen);
    this.details.ontoggle = this.redraw;
    const { dragged } = this;
    const scene = dragged ? { ...given, [dragged.handle.key]: dragged.value } : given;
    const packetsIn = (queue: string): number => (isPackets(queue) ? quantity("queue", queue) : 0);
    const { queue, queue2 } = scene;
    const limits = this.world.network.bottlenecks.map((_, place) => packetsIn(scene.topology === "two-paths" && place === 1 ? queue2 : queue));
    const byFlow = BY_FLOW.includes(scene.discipline);
    const colour = worldColour(this.place);
    const sizes = { limits, delay: delayIn(scene) };
    // Where a drag started, the handle converts places to settings; its drawing follows the pointer.
    const shown = handlesOf(pathLayout(this.world.network, this.path.clientWidth, sizes), scene);
    if (!dragged) this.handles = shown;
    const view = { colour, ...sizes, handles: shown, dragged: dragged && { key: dragged.handle.key, value: dragged.value }, byFlow, packets, speed: scene.speed, chosen };
    this.spots = drawPath(this.path, this.world, view);
    if (this.details.open) {
      const span = Math.max(0.01, 3 * theoryOf(scene, this.world.name).baseRtt);
      const flow = chosen?.flow ?? this.world.groups.main;
      this.summary.textContent = this.world.started > 1 ? `Ladder diagram of flow ${flow + 1}` : "Ladder diagram";
      this.lines = drawLadder(this.ladder, this.world, { span, colour, flow, packets });
    }
  }

  /** Returns the goodput of each protocol in Mbit/s, and its share; nothing if all flows have one. */
  private shares(): { name: string; goodput: number; percent: string }[] {
    const { groups, flows } = this.world;
    if (!groups.several) return [];
    const sums = groups.protocols.map((_, group) =>
      flows.reduce((sum, flow, number) => (groups.groupOf(number) === group ? sum + (this.world.recentGoodput(MEASURED_S, flow) ?? 0) : sum), 0),
    );
    const total = sums.reduce((sum, one) => sum + one, 0);
    return sums.map((goodput, group) => {
      const percent = total > 0 ? `${((100 * goodput) / total).toFixed(0)} % of all` : "";
      return { name: PROTOCOLS[groups.protocols[group]!]!.label, goodput, percent };
    });
  }

  /** Writes the legend of the flows, whose packets have their colours. */
  private describeFlows(): void {
    const { groups, started } = this.world;
    const labels = groups.several ? Array.from({ length: Math.min(started, MOST_LISTED) }, (_, flow) => groups.labelOf(flow)) : [];
    const text = labels.join("\n");
    if (text === this.listed) return;
    this.listed = text;
    this.legend.hidden = labels.length === 0;
    this.legend.replaceChildren(
      ...labels.map((label, flow) => {
        const item = Object.assign(document.createElement("li"), { textContent: label });
        item.style.setProperty("--colour", flowColour(flow));
        return item;
      }),
    );
  }

  /** Returns the closed form of the goodput as text; empty without one. */
  private formOf({ form }: Theory, predicted: Prediction | null): string {
    if (!this.predictions.available) return form && this.world.started === 1 ? `; ${mega(form.goodput)} by ${form.name}` : "";
    return predicted?.value != null ? `; ${predicted.exact ? "" : "about "}${mega(predicted.value)} by theory` : "";
  }

  /** Writes the numbers. */
  describe(scene: Scene): void {
    const { world } = this;
    const { label } = world;
    this.describeFlows();
    const time = world.lastDelivery === undefined ? "" : ` at ${milliseconds(world.lastDelivery)}`;
    this.title.textContent = world.over ? `${label}: complete${time}` : label;
    const inside = world.packets.inside.size;
    this.path.setAttribute("aria-label", `${label}: ${inside} packets on the path. The left and right arrow keys choose one.`);
    this.ladder.setAttribute("aria-label", `${label}: ladder diagram. The left and right arrow keys choose a packet.`);
    const theory = theoryOf(scene, world.name);
    const goodput = world.recentGoodput(MEASURED_S);
    const shares = this.shares();
    const found = this.predictions.of(specOf(scene, world.name));
    // The closed forms are those of the flows at the start.
    const changed = world.started !== flowsOf(scene) || world.stopped.size > 0;
    // Before, the goodput is that of the start, or of other settings.
    const since = Math.max(0, ...scene.interventions.filter((one) => changesSettings(one) && one.at <= world.now).map(({ at }) => at));
    const own = shares[0]?.goodput ?? goodput;
    const measured = own === null || world.now < since + MEASURED_S ? null : own * 1e6;
    const sentence = found && !changed ? comparison(measured, found.goodput) : "";
    this.sentence.textContent = shares[0] ? sentence.replace(/^Goodput/, `Goodput of ${shares[0].name}`) : sentence;
    const form = this.formOf(theory, changed ? null : (found?.goodput ?? null));
    // With rivals, the max-min shares of a parking lot depend on their places.
    const parkingRivals = scene.rivals.length > 0 && scene.topology === "parking-lot";
    const limit = scene.topology === "parking-lot" ? "with max-min shares" : "at most";
    const rows: [string, string, string][] = [
      ["Goodput (Mbit/s)", number(goodput, 2), parkingRivals ? "" : `${mega(theory.total)} ${limit}${shares.length > 0 ? "" : form}`],
      ...shares.map(({ name, goodput: part, percent }, group): [string, string, string] => [
        `of ${name} (Mbit/s)`,
        number(part, 2),
        group === 0 ? `${percent}${form}` : percent,
      ]),
      ["cwnd (packets)", number(last(world.columns.cwnd), 0), `BDP ${theory.bdpPackets.toFixed(1)}`],
      ["RTT (ms)", number(last(world.columns.rtt), 1), `${(theory.baseRtt * 1e3).toFixed(1)} with full packets and no queue`],
      ["Drops, timeouts", `${world.drops}, ${world.timeouts}`, ""],
      ["Random losses, queue drops", `${world.lost.random}, ${world.lost.queue}`, ""],
      ["Lost ACKs", String(world.lost.ack), ""],
      ["Retransmissions", String(world.retransmissions), ""],
    ];
    if (world.flows.length > 1) {
      const goodputs = world.flows.flatMap((flow, number) =>
        world.stopped.has(number) ? [] : [world.recentGoodput(MEASURED_S, flow) ?? 0],
      );
      const parking = scene.topology === "parking-lot";
      const share = parking ? theory.share : theory.total / Math.max(1, goodputs.length);
      const text = `1 with the ${parking ? "max-min" : "equal"} share, ${mega(share)} Mbit/s each`;
      rows.push(["Fairness (Jain)", number(jain(goodputs), 3), parking && (changed || parkingRivals) ? "1 with equal shares" : text]);
    }
    const { random, queue, ack } = world.lost;
    this.figures.textContent = `${number(goodput, 1)} Mbit/s, RTT ${number(last(world.columns.rtt), 0)} ms; lost: ${random} random, ${queue} queue, ${ack} ACKs`;
    this.body.replaceChildren(
      ...rows.map((cells) => {
        const row = document.createElement("tr");
        cells.forEach((text, place) => {
          const cell = document.createElement(place === 0 ? "th" : "td");
          if (place === 0) cell.setAttribute("scope", "row");
          cell.textContent = text;
          row.append(cell);
        });
        return row;
      }),
    );
  }
}

const mega = (value: number): string => (value / 1e6).toFixed(2);

function number(value: number | null | undefined, digits: number): string {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

function jain(values: readonly number[]): number | null {
  const squares = values.reduce((sum, value) => sum + value * value, 0);
  return squares === 0 ? null : values.reduce((sum, value) => sum + value, 0) ** 2 / (values.length * squares);
}
