// The page: controls, keys, and the loop that draws.
import { Announcer } from "./announcer";
import { Charts } from "./charts";
import { checkVersion, type Stop, type TraceEvent } from "./engine";
import { FlowCharts } from "./flow-charts";
import { FlowControls } from "./flow-controls";
import { InterventionList } from "./intervention-list";
import { checkedInterventions, type Intervention } from "./interventions";
import { LESSONS } from "./lessons";
import { changesSettings, fromStart, isLive } from "./live-settings";
import { milliseconds } from "./narrative";
import { PacketPanel } from "./packet-panel";
import { Player } from "./player";
import { Predictions } from "./predictions";
import { isNative } from "./native";
import { addControllers, canChange, PROTOCOLS } from "./protocols";
import { checked, DEFAULT, fromHash, LONGEST_S, toHash, type Scene } from "./scene";
import { fitted } from "./rivals";
import { NAMED } from "./scenes";
import { SettingsForm } from "./settings-form";
import { openServed, servedStudy, share, type Shared } from "./share";
import { Sketch, type Plan } from "./sketch";
import { Sliders } from "./sliders";
import { Timeline } from "./timeline";
import { Tour } from "./tour";
import { theoryOf } from "./theory";
import { transport } from "./transports";
import type { World } from "./world";
import { WorldPanel } from "./world-panel";

const TEXT_MS = 200;
const STEP_S = 1e-3;
/** Seconds of a prediction in a scene without a lesson. */
const FREE_S = 2;
/** Sentences in the list of events. */
const MOST_LISTED = 60;

const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const message = by<HTMLParagraphElement>("message");

function show(text: string): void {
  message.textContent = text;
  message.hidden = text === "";
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether the page is inside a lesson, which has its own text. */
const embedded = new URLSearchParams(location.search).has("embed");
/** Whether the page is part of the documentation site. */
const inSite = new URLSearchParams(location.search).has("lesson");

/** Whether `longfat explore` serves a study. */
const hasStudy = new URLSearchParams(location.search).has("study");
/** Whether the address requests that study, instead of a scene. */
const served = location.hash === "" && hasStudy;

function initial(): Scene {
  try {
    const lesson = new URLSearchParams(location.search).get("lesson");
    return fromHash(location.hash || (lesson ? `#lesson=${lesson}` : ""), show);
  } catch (error) {
    show(`This address is not valid: ${textOf(error)}. The page shows the default scene.`);
    return { ...DEFAULT };
  }
}

class Page {
  private readonly announcer = new Announcer(by("announcer"));
  private readonly marks = (): number[] => this.scene.interventions.map(({ at }) => at);
  private readonly sketch = new Sketch(() => (this.stale = true));
  private readonly charts = new Charts(by("charts"), this.marks, this.sketch);
  private readonly player: Player;
  private readonly predictions: Predictions;
  private panels: WorldPanel[] = [];
  private readonly flowCharts = new FlowCharts(by("flow-charts"), this.marks);
  private readonly packet: PacketPanel;
  private readonly flows: FlowControls;
  private readonly interventions = new InterventionList((one) => this.act(() => this.remove(one)));
  private readonly settings = new SettingsForm({
    set: (key, value) =>
      this.set(key, value).then(
        () => true,
        (error: unknown) => (show(textOf(error)), false),
      ),
    setWorlds: (worlds, place) => this.act(() => this.changeWorlds(worlds, place)),
    setTogether: (changes) => this.act(() => this.changeTogether(changes)),
  });
  private readonly sliders = new Sliders(by("quick"), (key, value) => this.act(() => this.set(key, value)));
  private readonly timeline = new Timeline((time) => this.act(() => this.seek(time)));
  private readonly tour = new Tour();
  private lastFrame = performance.now();
  /** Chart that the next frame draws. */
  private turn = 0;
  private lastText = 0;
  private eventsShown = "";
  private stale = true;
  private drawn = "";
  /** Protocols in the charts. */
  private names = "";
  /** Whether packets, or a scene that stands, have been drawn. Charts wait for it, so that packets come first. */
  private opened = false;
  /** Whether the scene has passed the end of the prediction. */
  private compared = false;

  constructor(scene: Scene) {
    const engine = transport();
    by("engine").textContent = `${engine.name} engine`;
    this.predictions = new Predictions(engine.theory, () => (this.stale = true));
    this.player = new Player(engine, scene, (text) => this.fail(text));
    this.packet = new PacketPanel(by("hint"), by("history"), by("drop"), ({ world, event }) => this.drop(world, event));
    this.flows = new FlowControls((intervention) => this.act(() => this.intervene(intervention)));
    this.listen();
    this.fill();
    document.body.classList.toggle("embed", embedded);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.act(async () => {
      await checkVersion(engine);
      if (served) {
        this.closeSettings();
        await openServed(this.shared);
      } else await this.restart();
      if (embedded && this.scene.lesson > 0) this.sketch.begin(this.plan);
      this.play(!still && (!embedded || new URLSearchParams(location.search).has("play")));
    });
    requestAnimationFrame((time) => this.frame(time));
  }

  private get scene(): Scene {
    return this.player.scene;
  }

  /** Returns the seconds that charts show; 0 for all. */
  private get span(): number {
    return Number(by<HTMLSelectElement>("span").value);
  }

  /** What exports and study files need of the page. */
  private get shared(): Shared {
    const { player, charts } = this;
    return {
      get scene() {
        return player.scene;
      },
      get present() {
        return player.present;
      },
      get worlds() {
        return player.worlds;
      },
      get charts() {
        return charts.shown;
      },
      load: (scene) => this.load(scene),
      capture: (place, side) => player.capture(place, side),
      show,
      act: (work) => this.act(work),
    };
  }

  private fail(text: string): void {
    this.play(false);
    show(text);
  }

  /** Runs an action of a control; its error becomes the page's message. */
  private act(work: () => Promise<unknown> | void): void {
    Promise.resolve()
      .then(work)
      .catch((error: unknown) => this.fail(textOf(error)));
  }

  private async restart(): Promise<void> {
    await this.player.restart();
    this.timeline.reset();
    this.showWorlds();
  }

  /** Moves to another time. */
  private async seek(time: number): Promise<void> {
    const { playing } = this.player;
    this.play(false);
    this.sketch.close();
    if (await this.player.seek(time)) this.showWorlds();
    this.stale = true;
    this.play(playing);
  }

  /** Shows the worlds of the player, after each of its starts. */
  private showWorlds(): void {
    this.packet.choose(undefined);
    const open = this.panels.map((panel) => panel.open);
    this.panels = this.player.worlds.map(
      (world, place) =>
        new WorldPanel(
          world,
          place,
          this.predictions,
          (owner, event, byKey) => this.choose(owner, event, byKey),
          (key, value) => this.act(() => this.set(key, value)),
        ),
    );
    for (const [place, panel] of this.panels.entries()) panel.open = open[place] ?? false;
    by("worlds").replaceChildren(...this.panels.map((panel) => panel.element));
    if (this.opened) {
      this.resetCharts();
      this.names = this.player.worlds.map(({ name }) => name).join();
    }
    // With several protocols, the flows are what the scene is about.
    if (this.scene.rivals.length > 0) by("charts").before(by("flow-charts"));
    else by("charts").after(by("flow-charts"));
    this.stale = true;
  }

  /** Returns what the reader predicts: the plan of the lesson, or the first window of a free scene. */
  private get plan(): Plan {
    const { worlds, lesson } = this.scene;
    const { bdpPackets } = theoryOf(this.scene, worlds[0]!);
    const high = Number(Math.max(20, 4 * bdpPackets).toPrecision(1));
    const plan = LESSONS[lesson - 1]?.plan ?? { chart: 0, column: "cwnd", what: "the window", unit: "packets", span: FREE_S, high };
    return worlds.length > 1 ? { ...plan, what: `${plan.what} of ${PROTOCOLS[worlds[0]!]!.label}` } : plan;
  }

  /** Returns to the start, and lets the reader draw. */
  private async predict(): Promise<void> {
    show("");
    this.play(false);
    this.sketch.begin(this.plan);
    await this.restart();
    by("charts").scrollIntoView({ block: "nearest" });
  }

  private play(on: boolean): void {
    if (on && this.player.worlds.length > 0) this.sketch.close();
    this.player.playing = on;
    this.stale = true;
    by("play").textContent = on ? "Pause" : "Play";
  }

  /** Sets a setting: at once if it changes while the scene runs, otherwise with a restart. */
  private async set(key: keyof Scene, value: string | number): Promise<void> {
    show("");
    if (this.player.present[key] === value) return;
    if (isLive(key) && this.player.running) return void (await this.intervene({ at: 0, do: "change", key, value }));
    await this.change({ [key]: value });
    this.explainRestart();
  }

  /** Explains why a restart shows earlier settings. */
  private explainRestart(): void {
    if (this.scene.interventions.some(changesSettings)) {
      show("The scene restarts with its first settings. The interventions change them at their times, or apply them from the start.");
    }
  }

  /** Takes another scene over, with a restart if it simulates something else. */
  private async change(changes: Partial<Scene>): Promise<void> {
    const next = checked(fitted({ ...this.scene, ...changes }));
    show("");
    this.take(next);
    if (Object.keys(changes).some((key) => key !== "speed")) await this.restart();
    this.stale = true;
  }

  /** Takes other protocols over: TCP controllers and MPTCP schedulers at once, others with a restart. */
  private async changeWorlds(shown: string[], place: number): Promise<void> {
    const { scene, player } = this;
    if (place < 0) {
      // Their places change, and with them those of their interventions.
      const interventions = scene.interventions.filter((one) => !("world" in one));
      await this.change({ worlds: shown, interventions });
      return this.explainRestart();
    }
    const name = shown[place]!;
    const world = player.worlds[place];
    if (canChange(player.present.worlds[place]!, name) && player.running && world && !world.over) {
      await this.intervene({ at: 0, do: "change-protocol", world: place, name });
      return;
    }
    const worlds = this.scene.worlds.map((old, other) => (other === place ? name : old));
    await this.change({ worlds, interventions: this.scene.interventions.filter((one) => !("world" in one && one.world === place)) });
  }

  /** Takes other rivals over, with a restart. Flows that start in a group which no longer exists have no place. */
  private async changeTogether(changes: Partial<Scene>): Promise<void> {
    const { rivals = this.scene.rivals } = changes;
    const interventions = this.scene.interventions.filter((one) => one.do !== "start-flow" || (one.group ?? 0) <= rivals.length);
    await this.change({ ...changes, interventions });
    this.settings.fill(this.player.present);
    this.explainRestart();
  }

  /** Removes an intervention: with a restart if it has applied. */
  private async remove(intervention: Intervention): Promise<void> {
    const next = checked({ ...this.scene, interventions: this.scene.interventions.filter((one) => one !== intervention) });
    show("");
    const applied = this.player.remove(intervention);
    this.take(next);
    if (applied) await this.restart();
    this.stale = true;
  }

  private take(scene: Scene): void {
    this.player.scene = scene;
    history.replaceState(null, "", toHash(scene));
  }

  private listen(): void {
    by("play").onclick = () => this.play(!this.player.playing);
    by("predict").onclick = () => this.act(() => this.predict());
    by("step").onclick = () => this.step();
    by("restart").onclick = () => this.act(() => this.restart());
    for (const kind of ["drop", "timeout", "retransmission"] as const) {
      by(`next-${kind}`).onclick = () => this.act(() => this.jump(kind));
    }
    by<HTMLInputElement>("speed").oninput = ({ target }) => {
      const speed = Number((10 ** Number((target as HTMLInputElement).value)).toPrecision(2));
      this.act(async () => {
        await this.change({ speed });
        this.describeSpeed();
      });
    };
    by("from-start").onclick = () => this.act(() => this.change(fromStart(this.scene)));
    by("clear").onclick = () => this.act(() => this.change({ interventions: [] }));
    const lesson = by<HTMLSelectElement>("lesson");
    for (const [place, { title }] of LESSONS.entries()) lesson.add(new Option(`${place + 1}. ${title}`, `lesson=${place + 1}`));
    for (const [name, { title }] of Object.entries(NAMED)) lesson.add(new Option(title, `scene=${name}`));
    lesson.onchange = () => this.act(() => this.load(fromHash(`#${lesson.value}`)));
    window.onhashchange = () =>
      this.act(async () => {
        const notes: string[] = [];
        await this.load(fromHash(location.hash, (text) => notes.push(text)));
        show(notes.join(" "));
      });
    by<HTMLSelectElement>("span").onchange = () => (this.stale = true);
    share(this.shared);
    document.onkeydown = (event) => this.key(event);
    matchMedia("(prefers-color-scheme: dark)").onchange = () => this.resetCharts();
  }

  private resetCharts(): void {
    this.charts.reset(this.player.worlds);
    this.flowCharts.reset(this.player.worlds);
  }

  /** Closes the settings, so that the path and the first charts of a prepared scene are visible. */
  private closeSettings(): void {
    by<HTMLDetailsElement>("setup").open = false;
  }

  private async load(scene: Scene): Promise<void> {
    show("");
    this.sketch.remove();
    this.take(scene);
    this.fill();
    if (scene.named) this.closeSettings();
    await this.restart();
  }

  private step(): void {
    this.play(false);
    this.sketch.close();
    this.act(async () => {
      await this.player.advance(STEP_S, "all");
      this.stale = true;
    });
  }

  private async jump(kind: Stop): Promise<void> {
    this.play(false);
    this.sketch.close();
    show("");
    const jump = await this.player.jump(kind, (searched) => {
      this.stale = true;
      if (searched >= 1) show(`Searching for a ${kind}: ${searched.toFixed(0)} s of virtual time.`);
    });
    this.stale = true;
    const end = jump.over ? ", until the end of the flows" : "";
    show(jump.found ? "" : `No ${kind} in the next ${jump.searched.toPrecision(3)} s of virtual time${end}.`);
  }

  private key(event: KeyboardEvent): void {
    const { target } = event;
    const typing = target instanceof HTMLElement && target.closest("input:not([type=range]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    // Arrows move a slider with the focus.
    if (event.key.startsWith("Arrow") && target instanceof HTMLElement && target.matches("input[type=range]")) return;
    const pressed = target instanceof HTMLElement && target.closest("button, summary");
    const speed = by<HTMLInputElement>("speed");
    const turn = (by: number): void => {
      speed.value = String(Number(speed.value) + by);
      speed.dispatchEvent(new Event("input"));
    };
    const actions: Record<string, () => void> = {
      ArrowRight: () => this.step(),
      ArrowUp: () => turn(0.1),
      ArrowDown: () => turn(-0.1),
      n: () => this.act(() => this.jump("drop")),
      t: () => this.act(() => this.jump("timeout")),
      v: () => this.act(() => this.jump("retransmission")),
      r: () => this.act(() => this.restart()),
      d: () => this.packet.press() || by("drop-next").click(),
    };
    if (!pressed) actions[" "] = () => this.play(!this.player.playing);
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Writes the scene into the controls. */
  private fill(): void {
    const { scene } = this;
    this.settings.fill(this.player.present);
    by<HTMLInputElement>("speed").value = String(Math.log10(scene.speed));
    const lesson = scene.named ? `scene=${scene.named}` : scene.lesson > 0 ? `lesson=${scene.lesson}` : "";
    by<HTMLSelectElement>("lesson").value = lesson;
    const question = by("question");
    question.textContent = (NAMED[scene.named] ?? LESSONS[scene.lesson - 1])?.question ?? "";
    question.hidden = question.textContent === "";
    const back = by<HTMLAnchorElement>("back");
    const page = LESSONS[scene.lesson - 1]?.page ?? "";
    // The site opens a scene with its lesson's number, and has the lesson next to the explorer.
    back.hidden = page === "" || embedded;
    back.textContent = `Lesson ${scene.lesson}`;
    if (inSite) back.href = `../learn/${page}.html`;
    else back.title = `docs/learn/${page}.md`;
    this.describeSpeed();
  }

  private describeSpeed(): void {
    const { speed } = this.scene;
    by("speed-text").textContent = speed < 1 ? `${Number((speed * 1e3).toPrecision(2))} ms per s` : speed === 1 ? "real time" : `${speed} times`;
  }

  /** Handles the choice of a packet: shows its history. A click also drops it, if clicks do that. */
  private choose(world: World, event: TraceEvent, byKey = false): void {
    this.packet.choose({ world, event });
    const inside = event.id !== undefined && world.packets.inside.has(event.id);
    if (inside && !byKey && by<HTMLInputElement>("click-drops").checked) this.drop(world, event);
    this.stale = true;
  }

  private drop(world: World, event: TraceEvent): void {
    const place = this.player.worlds.indexOf(world);
    this.act(() => this.intervene({ at: 0, do: "lose", world: place, id: event.id! }));
  }

  /** Applies an intervention now. Returns whether it has an effect. */
  private async intervene(intervention: Intervention): Promise<boolean> {
    show("");
    checkedInterventions([intervention]);
    const effective = await this.player.intervene(intervention);
    history.replaceState(null, "", toHash(this.scene));
    this.packet.describe();
    this.stale = true;
    return effective;
  }

  private describeEvents(): void {
    const all = this.player.worlds.flatMap((world, place) =>
      world.sentences.slice(-MOST_LISTED).reverse().map((sentence) => ({ sentence, world, place })),
    );
    all.sort((a, b) => b.sentence.time - a.sentence.time);
    const shown = all.slice(0, MOST_LISTED);
    const latest = shown.map(({ sentence, world }) => ({ sentence, label: world.label }));
    this.announcer.update(latest, this.player.playing);
    const key = `${this.player.worlds.map(({ said }) => said).join()} ${this.player.now === 0}`;
    if (key === this.eventsShown) return;
    this.eventsShown = key;
    by("events").replaceChildren(
      ...shown.map(({ sentence, world, place }) => {
        const item = document.createElement("li");
        item.style.setProperty("--colour", `var(--world-${place + 1})`);
        const { event } = sentence;
        const more = sentence.more ? ` And ${sentence.more} more.` : "";
        const text = `${milliseconds(sentence.time)}  ${sentence.text}${more}`;
        if (event?.id === undefined) item.textContent = text;
        else {
          const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
          button.onclick = () => this.choose(world, event);
          item.append(button);
        }
        return item;
      }),
    );
  }

  private frame(time: number): void {
    const elapsed = Math.min(0.1, (time - this.lastFrame) / 1e3);
    this.lastFrame = time;
    void this.player.frame(elapsed);
    // The step of one configuration can end after another's.
    const times = this.player.worlds.map(({ now }) => now).join();
    this.stale ||= !this.player.playing && times !== this.drawn;
    const active = this.player.playing || this.stale;
    this.drawn = times;
    if (active) {
      const packets = this.player.detail === "all";
      const { present } = this.player;
      for (const panel of this.panels) panel.draw(present, packets, this.packet.chosen);
    }
    if (!this.opened) {
      const { worlds, playing, now } = this.player;
      this.opened = worlds.length > 0 && (!playing || now > 0);
      if (this.opened && !embedded) this.tour.startOnce();
      if (this.opened && playing) this.describe();
      if (!this.opened || playing) return void requestAnimationFrame((next) => this.frame(next));
    }
    const names = this.player.worlds.map(({ name }) => name).join();
    if (names !== this.names) {
      // The scene has opened, or an intervention replaced a controller.
      this.names = names;
      this.resetCharts();
      this.stale = true;
    }
    const writes = active && (this.stale || time - this.lastText > TEXT_MS);
    if (writes) {
      this.lastText = time;
      this.flowCharts.update();
      this.describe();
    }
    if (this.stale) {
      this.charts.draw(this.span);
      this.flowCharts.draw(this.span);
    } else if (active && !writes) this.drawNextChart();
    this.stale = false;
    requestAnimationFrame((next) => this.frame(next));
  }

  /** Draws one chart, because all of them would take longer than a frame. */
  private drawNextChart(): void {
    const { charts, flowCharts, span } = this;
    this.turn = (this.turn + 1) % Math.max(1, charts.count + flowCharts.count);
    if (this.turn < charts.count) charts.draw(span, this.turn);
    else flowCharts.draw(span, this.turn - charts.count);
  }

  /** Compares the prediction, and pauses once at its end, where both curves are complete. */
  private describePrediction(): void {
    const { player, sketch } = this;
    const passed = player.now >= sketch.end;
    if (passed && !this.compared && player.playing) this.play(false);
    this.compared = passed;
    const text = sketch.describe(player.worlds[0]?.columns, player.playing);
    const prediction = by("prediction");
    if (prediction.textContent !== text) prediction.textContent = text;
    prediction.hidden = text === "";
  }

  private describe(): void {
    const { player } = this;
    by("clock").textContent = `${player.now.toFixed(3)} s`;
    const { present } = player;
    this.settings.update(present);
    this.sliders.update(present);
    this.timeline.update(player.now);
    this.interventions.describe(this.scene, player.now);
    for (const panel of this.panels) panel.describe(present);
    this.describeEvents();
    this.packet.describe();
    this.flows.describe(player.worlds[0]);
    if (player.playing && player.worlds.length > 0 && player.over) {
      this.play(false);
      if (player.now >= LONGEST_S) show(`The run stops at its limit of ${LONGEST_S} s of virtual time. Export a study for longer runs.`);
    }
    this.describePrediction();
  }
}

async function start(): Promise<void> {
  // The page of logs links back with the same engine.
  if (isNative()) by<HTMLAnchorElement>("to-log").search = "?engine=native";
  try {
    // Also a scene of the address can use the study's controllers. In WebAssembly there is no Python.
    if (hasStudy && isNative()) addControllers((await servedStudy()).controllers);
    new Page(initial());
  } catch (error) {
    show(textOf(error));
  }
}

void start();
