// The player: opens the worlds of a scene, advances them together, and applies changes and interventions.
import { apply, concerns } from "./applying";
import { INTERVAL_S } from "./columns";
import { isStop, Session, type Detail, type Side, type Stop, type Transport } from "./engine";
import { MOST_INTERVENTIONS, type Intervention } from "./interventions";
import { changesSettings, SAME_TIME_S, settingsAt } from "./live-settings";
import { quantity } from "./quantities";
import { checked, LONGEST_S, specOf, type Scene } from "./scene";
import { World } from "./world";

/** Events per second of real time that the page draws one by one. */
const MOST_EVENTS_PER_S = 30_000;
/** Longest computation of one step. */
const FRAME_MS = 40;
/** Shortest step in seconds of real time. With shorter ones, a slow connection to the engine would stop the simulation. */
const SHORTEST_STEP_S = 0.01;
/** Real time that a slow frame may catch up with. */
const LATE_S = 0.1;
/** Limits of a jump, in virtual and in real time. */
const JUMP_S = 60;
const JUMP_MS = 10_000;
/** Real time between two reports of a jump. */
const REPORT_MS = 200;

/** The result of a jump: whether there was an event, and the searched seconds of virtual time. */
export type Jump = { found: boolean; searched: number; over: boolean };

export class Player {
  worlds: World[] = [];
  playing = false;

  private sessions: Session[] = [];
  /** The interventions that each world has had. */
  private done: Set<Intervention>[] = [];
  private busy = false;
  /** The last work between steps. */
  private last: Promise<unknown> = Promise.resolve();
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
    this.done = opened.map(() => new Set());
    this.worlds = scene.worlds.map((name, place) => new World(name, scene, opened[place]!.network));
  }

  get now(): number {
    return Math.max(0, ...this.worlds.map((world) => world.now));
  }

  get over(): boolean {
    return this.worlds.every((world) => world.over || world.now >= LONGEST_S);
  }

  /** Returns whether changes apply while the scene runs; before its start and after its end they apply from the start. */
  get running(): boolean {
    return this.now > 0 && !this.over;
  }

  /** Returns the scene with its settings now. */
  get present(): Scene {
    return settingsAt(this.scene, this.now);
  }

  /** Returns whether single packets are simulated at this speed. */
  get detail(): Detail {
    const packets = quantity("rate", this.present.rate) / 12_000;
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
const limit = this.stepLimit * (spent > FRAME_MS ? 0.8 : 1.25);
    const { speed } = this.scene;
    this.stepLimit = Math.max(SHORTEST_STEP_S * speed, Math.min(Math.max(2, LATE_S * speed), limit));
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
      const next = this.scene.interventions.find((one) => !this.done[place]!.has(one));
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
      if (!next || next.at > world.now + SAME_TIME_S) return found;
      await this.applyTo(place, next);
    }
  }

  /** Applies an intervention to a world. Returns whether it has an effect. */
  private async applyTo(place: number, intervention: Intervention): Promise<boolean> {
    const world = this.worlds[place]!;
    this.done[place]!.add(intervention);
    try {
      const started = await apply(intervention, this.scene, { place, session: this.sessions[place]! });
      if (concerns(intervention, world.groups.protocols)) world.intervene(intervention, place, started);
      return true;
    } catch (error) {
      world.note(`The intervention has no effect: ${error instanceof Error ? error.message : error}.`);
      return false;
    }
  }

  /** Applies an intervention now, and adds it to the scene. Returns whether it has an effect in each configuration. */
  intervene(given: Intervention): Promise<boolean> {
    return this.alone(async () => {
      const at = given.do === "lose" ? this.worlds[given.world]!.now : this.now;
      const intervention = { ...given, at };
      const before = this.scene.interventions.filter((one) => one.at <= at + SAME_TIME_S);
      if (before.length >= MOST_INTERVENTIONS) {
        throw new Error(`The scene has ${MOST_INTERVENTIONS} interventions, the limit. Remove some first.`);
      }
      // Later packets and flows of a repeated scene do not exist after a different past; later settings do.
      const later = this.scene.interventions.filter((one) => one.at > at + SAME_TIME_S && changesSettings(one));
      this.scene = checked({ ...this.scene, interventions: [...before, intervention, ...later] });
      let effective = true;
      for (const [place, world] of this.worlds.entries()) {
        // A world that is ahead has its past, and one that is behind gets the intervention when it is there.
        if (world.now > at + SAME_TIME_S) this.done[place]!.add(intervention);
        else if (world.now >= at - SAME_TIME_S) effective = (await this.applyTo(place, intervention)) && effective;
      }
      return effective;
    });
  }

  /** Works between two steps, in the order of the calls. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(async () => {
      while (this.busy) await new Promise((wait) => setTimeout(wait, 2));
      this.busy = true;
      try {
        return await work();
      } finally {
        this.busy = false;
      }
    });
    this.last = done.catch(() => undefined);
    return done;
  }

  /** Removes an intervention from the scene. Returns whether a world has already had it. */
  remove(intervention: Intervention): boolean {
    this.scene = { ...this.scene, interventions: this.scene.interventions.filter((one) => one !== intervention) };
    return this.done.some((had) => had.has(intervention));
  }

  /**
   * Advances to 1 ms after the next event of a kind in the first world, for up to 60 s of virtual and 10 s of real time; the
   * others follow to the same time. `report` receives the searched seconds.
   */
  jump(until: Stop, report: (searched: number) => void): Promise<Jump> {
    return this.alone(async () => {
      const world = this.worlds[0];
      if (!world) return { found: false, searched: 0, over: false };
      const { generation } = this;
      const [start, started] = [world.now, performance.now()];
      const limit = Math.min(start + JUMP_S, LONGEST_S);
      let [found, slice] = [false, SHORTEST_STEP_S];
      while (!found && !world.over && world.now < limit && performance.now() - started < JUMP_MS) {
        if (generation !== this.generation) break;
        const before = performance.now();
        found = await this.advanceTo(0, Math.min(world.now + slice, limit), this.jumpDetail, generation, until);
        slice *= performance.now() - before < REPORT_MS ? 2 : 0.5;
        report(world.now - start);
      }
      const { now } = world;
      for (let place = 1; place < this.sessions.length; place += 1) await this.advanceTo(place, now, this.jumpDetail, generation);
      return { found, searched: now - start, over: world.over };
    });
  }

  /** Moves to a time: an earlier one by simulating again from the start. Returns whether it restarted. */
  async seek(time: number): Promise<boolean> {
    const back = time < this.now - SAME_TIME_S;
    if (back) await this.restart();
    await this.alone(async () => {
      const { generation } = this;
      await Promise.all(this.sessions.map((_, place) => this.advanceAll(place, time, generation)));
    });
    return back;
  }

  /** Advances one world to a time, in as many steps as it takes. */
  private async advanceAll(place: number, time: number, generation: number): Promise<void> {
    const world = this.worlds[place]!;
    while (world.now < time - 1e-9 && !world.over && generation === this.generation) {
      await this.advanceTo(place, time, this.detail, generation);
    }
  }

  /** Returns the latest packets of a world as a capture file. */
  async capture(place: number, side: Side): Promise<Uint8Array<ArrayBuffer>> {
    if (this.detail !== "all") throw new Error("a capture needs every packet: lower the speed, play, and export again");
    return this.sessions[place]!.capture(side);
  }

  private get jumpDetail(): Detail {
    return quantity("rate", this.present.rate) <= 20e6 ? "all" : "losses";
  }
}
