// The player: opens the worlds of a scene, advances them together, and applies changes and interventions.
import { INTERVAL_S } from "./columns";
import { isStop, Session, type Detail, type Stop, type Transport } from "./engine";
import { apply, MOST_INTERVENTIONS, type Intervention } from "./interventions";
import { cablesOf } from "./layout";
import { flowsOf, lossKey, queueKey } from "./network-keys";
import { familyOf, protocolKey } from "./protocols";
import { quantity } from "./quantities";
import { LONGEST_S, specOf, type Scene } from "./scene";
import { payloadOf } from "./theory";
import { World } from "./world";

/** Events per second of real time that the page draws one by one. */
const MOST_EVENTS_PER_S = 30_000;
/** Longest computation of one step. */
const FRAME_MS = 40;
/** Real time that a slow frame may catch up with. */
const LATE_S = 0.1;
const JUMP_S = 60;

/** Keys of the path and of the second path that change while it runs. */
export const LIVE = ["rate", "delay", "jitter", "loss", "burst", "queue", "rate2", "delay2", "loss2", "queue2"] as const;
export type LiveKey = (typeof LIVE)[number];

export class Player {
  worlds: World[] = [];
  playing = false;

  private sessions: Session[] = [];
  /** Number of interventions that each world has had. */
  private done: number[] = [];
  private busy = false;
  private owed = 0;
  private stepLimit = 0.05;
  private generation = 0;

  constructor(
    private readonly transport: Transport,
    public scene: Scene,
    private readonly failed: (message: string) => void,
  ) {}

  /** Starts all worlds of the scene anew. */
  async restart(): Promise<void> {
    const generation = (this.generation += 1);
    const { scene } = this;
    const old = this.sessions;
    this.sessions = [];
    this.owed = 0;
    const opened = await Promise.all(
      scene.worlds.map((name) => Session.open(this.transport, specOf(scene, name), INTERVAL_S)),
    );
    await Promise.all(old.map((session) => session.close()));
    if (generation !== this.generation) return void (await Promise.all(opened.map((session) => session.close())));
    this.sessions = opened;
    this.done = opened.map(() => 0);
    this.worlds = scene.worlds.map((name, place) => new World(name, payloadOf(name), opened[place]!.network, flowsOf(scene)));
  }

  get now(): number {
    return Math.max(0, ...this.worlds.map((world) => world.now));
  }

  get over(): boolean {
    return this.worlds.every((world) => world.over || world.now >= LONGEST_S);
  }

  /** Returns whether single packets are simulated at this speed. */
  get detail(): Detail {
    const packets = quantity("rate", this.scene.rate) / 12_000;
    const links = Math.max(1, ...this.worlds.map(({ network }) => network.bottlenecks.length));
    const events = packets * 5 * links * this.scene.worlds.length * this.scene.speed;
    return events <= MOST_EVENTS_PER_S ? "all" : "losses";
  }

  /** Advances by the time since the last frame. */
  async frame(elapsed: number): Promise<void> {
    if (!this.playing) return;
    this.owed = Math.min(this.owed + elapsed * this.scene.speed, this.stepLimit);
    if (this.busy || this.over) return;
    const step = this.owed;
    this.owed = 0;
    const start = performance.now();
    await this.advance(step, this.detail);
    const spent = performance.now() - start;
    this.stepLimit = Math.max(1e-5, Math.min(Math.max(2, LATE_S * this.scene.speed), spent > FRAME_MS ? this.stepLimit * 0.8 : this.stepLimit * 1.25));
  }

  /** Advances all worlds. */
  async advance(step: number, detail: Detail): Promise<void> {
    if (this.busy || this.sessions.length === 0) return;
    this.busy = true;
    const generation = this.generation;
    const until = Math.min(this.now + Math.max(1e-6, step), LONGEST_S);
    try {
      await Promise.all(this.sessions.map((_, place) => this.advanceTo(place, until, detail, generation)));
    } catch (error) {
      this.playing = false;
      this.failed(error instanceof Error ? error.message : String(error));
    } finally {
      this.busy = false;
    }
  }

  /** Advances one world, and applies its interventions at their times. Returns whether it found an event of the kind `stop`. */
  private async advanceTo(place: number, until: number, detail: Detail, generation: number, stop?: Stop): Promise<boolean> {
    const [world, session] = [this.worlds[place]!, this.sessions[place]!];
    let found = false;
    for (;;) {
      const next = this.scene.interventions[this.done[place]!];
      const end = next && next.at < until ? next.at : until;
      if (world.now < end && !world.over) {
        const step = await session.advance(Math.max(1e-9, end - world.now), detail, stop);
        if (generation !== this.generation) return found;
        world.apply(step, detail);
        found ||= stop !== undefined && step.events.some((event) => isStop(stop, event));
        if (found) return true;
        // A step with too many events stops early: a jump continues, the page draws first.
        if (world.now < end - 1e-9 && !world.over) {
          if (stop === undefined) return false;
          continue;
        }
      }
      if (!next || next.at > world.now + 1e-9) return found;
      this.done[place]! += 1;
      await this.applyTo(place, next);
    }
  }

  private async applyTo(place: number, intervention: Intervention): Promise<void> {
    const world = this.worlds[place]!;
    try {
      await apply(intervention, place, this.sessions[place]!);
      world.intervene(intervention, place);
    } catch (error) {
      world.note(`The intervention has no effect: ${error instanceof Error ? error.message : error}.`);
    }
  }

  /** Applies an intervention now, and adds it to the scene. */
  async intervene(intervention: Intervention): Promise<void> {
    const { interventions } = this.scene;
    if (interventions.length >= MOST_INTERVENTIONS) {
      throw new Error(`The scene has ${MOST_INTERVENTIONS} interventions, the limit. Clear them first.`);
    }
    while (this.busy) await new Promise((done) => setTimeout(done, 2));
    this.busy = true;
    try {
      const at = intervention.do === "lose" ? this.worlds[intervention.world]!.now : this.now;
      // Later interventions of a repeated scene do not apply to a different past.
      const kept = interventions.filter((one) => one.at <= at);
      this.scene = { ...this.scene, interventions: [...kept, { ...intervention, at }] };
      const place = kept.length;
      for (const world of this.worlds.keys()) {
        if (this.done[world]! > place || this.worlds[world]!.now < at - 1e-9) continue;
        this.done[world] = place + 1;
        await this.applyTo(world, this.scene.interventions[place]!);
      }
    } finally {
      this.busy = false;
    }
  }

  /** Advances to 1 ms after the next event of a kind in the first world; the others follow to the same time. */
  async jump(until: Stop): Promise<boolean> {
    if (this.sessions.length === 0 || this.busy) return false;
    this.busy = true;
    const { generation } = this;
    try {
      const limit = Math.min(this.worlds[0]!.now + JUMP_S, LONGEST_S);
      const found = await this.advanceTo(0, limit, this.jumpDetail, generation, until);
      const { now } = this.worlds[0]!;
      for (let place = 1; place < this.sessions.length; place += 1) await this.advanceTo(place, now, this.jumpDetail, generation);
      return found;
    } finally {
      this.busy = false;
    }
  }

  /** Returns the latest packets of a world as a capture file. */
  async capture(place: number): Promise<Uint8Array<ArrayBuffer>> {
    if (this.detail !== "all") throw new Error("a capture needs every packet: lower the speed, play, and export again");
    return this.sessions[place]!.capture();
  }

  private get jumpDetail(): Detail {
    return quantity("rate", this.scene.rate) <= 20e6 ? "all" : "losses";
  }

  /** Changes a key of the path, or of each bottleneck, while it runs. */
  async changePath(key: LiveKey): Promise<void> {
    const link = key === "burst" ? "loss" : key.replace("2", "");
    for (const second of key === "burst" ? [false, true] : [key.endsWith("2")]) await this.changeLinks(link, second);
  }

  private async changeLinks(link: string, second: boolean): Promise<void> {
    const { scene } = this;
    const value = this.valueOf(link, second);
    for (const session of this.sessions) {
      const cables = cablesOf(session.network);
      const own = scene.topology === "two-paths" ? cables.slice(second ? 1 : 0, second ? 2 : 1) : second ? [] : cables;
      for (const name of own.flat()) await session.changeLink(name, link, value);
    }
  }

  private valueOf(link: string, second: boolean): unknown {
    const { scene } = this;
    const own = second
      ? { rate: scene.rate2, delay: scene.delay2, loss: scene.loss2, queue: scene.queue2, jitter: "0ms" }
      : scene;
    if (link === "loss") return lossKey(scene, own.loss);
    if (link === "queue") return queueKey(scene, own.queue);
    if (link === "jitter") return quantity("jitter", own.jitter) === 0 ? null : own.jitter;
    return link === "rate" ? own.rate : own.delay;
  }

  /** Replaces the protocol of a world: TCP by TCP while it runs, others by a restart. Returns whether it restarted. */
  async changeProtocol(place: number, old: string, name: string): Promise<boolean> {
    const world = this.worlds[place];
    const session = this.sessions[place];
    const live = familyOf(old) === "tcp" && familyOf(name) === "tcp";
    if (!world || !session || !live || world.now === 0 || world.over) {
      await this.restart();
      return true;
    }
    const { congestion } = protocolKey(name, this.scene);
    const flows = Math.max(flowsOf(this.scene), world.flows.length);
    for (let flow = 0; flow < flows; flow += 1) {
      if (!world.stopped.has(flow)) await session.setController(flow, congestion);
    }
    await session.setController(undefined, congestion);
    world.name = name;
    return false;
  }
}
