// The player: opens the worlds of a scene, advances them together, and reports what changed.
import { Session, type Detail, type Stop, type Transport } from "./engine";
import { isTcp, protocolKey } from "./protocols";
import { LONGEST_S, quantity, queueKey, specOf, type Scene } from "./scene";
import { payloadOf } from "./theory";
import { INTERVAL_S, World } from "./world";

/** Events per second of real time that the page draws one by one. */
const MOST_EVENTS_PER_S = 30_000;
/** Longest computation of one step. */
const FRAME_MS = 40;
const JUMP_S = 60;

export class Player {
  worlds: World[] = [];
  playing = false;

  private sessions: Session[] = [];
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
    const [rate, delay] = [quantity("rate", scene.rate), quantity("delay", scene.delay)];
    const old = this.sessions;
    this.sessions = [];
    this.owed = 0;
    const opened = await Promise.all(
      scene.worlds.map((name) => Session.open(this.transport, specOf(scene, name), INTERVAL_S)),
    );
    await Promise.all(old.map((session) => session.close()));
    if (generation !== this.generation) return void (await Promise.all(opened.map((session) => session.close())));
    this.sessions = opened;
    this.worlds = scene.worlds.map((name) => new World(name, payloadOf(name), rate, delay));
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
    const events = packets * 5 * this.scene.worlds.length * this.scene.speed;
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
    this.stepLimit = Math.max(1e-5, Math.min(2, spent > FRAME_MS ? this.stepLimit * 0.8 : this.stepLimit * 1.25));
  }

  /** Advances all worlds, and returns whether all replied. */
  async advance(step: number, detail: Detail, until?: Stop): Promise<void> {
    if (this.busy || this.sessions.length === 0) return;
    this.busy = true;
    const generation = this.generation;
    const size = Math.max(1e-6, Math.min(step, LONGEST_S - this.now));
    try {
      const steps = await Promise.all(this.sessions.map((session) => session.advance(size, detail, until)));
      if (generation !== this.generation) return;
      steps.forEach((found, place) => this.worlds[place]!.apply(found, detail));
    } catch (error) {
      this.playing = false;
      this.failed(error instanceof Error ? error.message : String(error));
    } finally {
      this.busy = false;
    }
  }

  /** Advances to 1 ms after the next event of a kind in the first world; the others follow to the same time. */
  async jump(until: Stop): Promise<boolean> {
    const [first, ...others] = this.sessions;
    if (!first || this.busy) return false;
    this.busy = true;
    try {
      const before = this.worlds[0]!.sentences.length;
      const found = await first.advance(Math.max(1e-6, Math.min(JUMP_S, LONGEST_S - this.now)), this.jumpDetail, until);
      this.worlds[0]!.apply(found, this.jumpDetail);
      for (const [place, session] of others.entries()) {
        const world = this.worlds[place + 1]!;
        if (found.now_s > world.now) world.apply(await session.advance(found.now_s - world.now, this.jumpDetail), this.jumpDetail);
      }
      return found.events.length > 0 && (this.worlds[0]!.sentences.length > before || before > 0);
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

  /** Changes a key of the path while it runs. */
  async changePath(key: "rate" | "delay" | "loss" | "queue" | "jitter", value: string): Promise<void> {
    const none = (key === "loss" || key === "jitter") && quantity(key, value) === 0;
    const given = none ? null : key === "queue" ? queueKey(this.scene) : value;
    for (const session of this.sessions) {
      for (const link of ["forward", "reverse"]) await session.changeLink(link, key, given);
    }
    const [rate, delay] = [quantity("rate", this.scene.rate), quantity("delay", this.scene.delay)];
    for (const world of this.worlds) world.change(rate, delay);
  }

  /** Replaces the protocol of a world: TCP by TCP while it runs, others by a restart. Returns whether it restarted. */
  async changeProtocol(place: number, old: string, name: string): Promise<boolean> {
    const world = this.worlds[place];
    const session = this.sessions[place];
    if (!world || !session || !isTcp(old) || !isTcp(name) || world.now === 0 || world.over) {
      await this.restart();
      return true;
    }
    const { congestion } = protocolKey(name, this.scene.window);
    for (let flow = 0; flow < this.scene.flows; flow += 1) await session.setController(flow, congestion);
    world.name = name;
    return false;
  }
}
