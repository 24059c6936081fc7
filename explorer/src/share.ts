// The exports of a scene, and the study files that become one.
import { save, studyFile } from "./exports";
import type { Side } from "./engine";
import { cablesOf } from "./layout";
import { pictureOf, pngOf, type Chart } from "./picture";
import type { Controller } from "./protocols";
import { pythonProgram } from "./python-export";
import { sceneOf } from "./study-file";
import { toHash, type Scene } from "./scene";
import { omissions } from "./study-interventions";
import { theoryOf } from "./theory";
import type { World } from "./world";

/** Virtual seconds per second of a study that `longfat explore` opens. */
const SERVED_SPEED = 0.5;
/** Limit of a study file in bytes. */
const LARGEST = 1e6;

/** The parts of the page that exports need. */
export interface Shared {
  /** The scene of the address. */
  readonly scene: Scene;
  /** The scene with its settings now. */
  readonly present: Scene;
  readonly worlds: readonly World[];
  readonly charts: readonly Chart[];
  load(scene: Scene): Promise<void>;
  capture(place: number, side: Side): Promise<Uint8Array<ArrayBuffer>>;
  show(text: string): void;
  /** Runs an action, whose error becomes the page's message. */
  act(work: () => Promise<unknown> | void): void;
}

/** Connects the buttons, and the files dropped on the page. */
export function share(page: Shared): void {
  const on = (id: string, work: () => Promise<unknown> | void): void => {
    document.getElementById(id)!.onclick = () => page.act(work);
  };
  on("svg", () => save("longfat.svg", new Blob([picture(page)], { type: "image/svg+xml" })));
  on("png", async () => save("longfat.png", await pngOf(picture(page))));
  on("toml", () => {
    save("study.toml", new Blob([studyFile(page.scene)], { type: "text/plain" }));
    const missing = omissions(page.scene);
    page.show(missing && `${missing} The Python program has them.`);
  });
  on("python", () => {
    const cables = page.worlds[0] ? cablesOf(page.worlds[0].network) : [];
    save("scene.py", new Blob([pythonProgram(page.scene, cables)], { type: "text/plain" }));
  });
  on("pcapng", () => captures(page));
  on("link", () => copyLink(page));
  const chooser = document.getElementById("file") as HTMLInputElement;
  on("open", () => chooser.click());
  chooser.onchange = () => {
    const [file] = chooser.files ?? [];
    if (file) page.act(() => open(page, file));
    chooser.value = "";
  };
  listenForDrops(page);
}

function listenForDrops(page: Shared): void {
  const mark = (over: boolean): void => void document.body.classList.toggle("drop", over);
  document.ondragover = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    mark(true);
  };
  document.ondragleave = ({ relatedTarget }) => relatedTarget ?? mark(false);
  document.ondrop = (event) => {
    event.preventDefault();
    mark(false);
    const [file] = event.dataTransfer?.files ?? [];
    page.act(() => (file ? open(page, file) : page.show("Only files can be dropped here.")));
  };
}

async function open(page: Shared, file: File): Promise<void> {
  try {
    if (file.size > LARGEST) throw new Error(`${(file.size / 1e6).toFixed(1)} MB is too large for a study file`);
    const { scene, notes } = sceneOf(await file.text(), page.scene);
    await page.load(scene);
    page.show([`${file.name} is open.`, ...notes].join(" "));
  } catch (error) {
    throw new Error(`${file.name}: ${error instanceof Error ? error.message : error}`);
  }
}

interface Served {
  name: string;
  text: string;
  note: string;
  controllers: Controller[];
}

let served: Promise<Served> | undefined;

/** Returns the study that `longfat explore` serves. */
export function servedStudy(): Promise<Served> {
  return (served ??= fetch("study.json").then((response) => response.json() as Promise<Served>));
}

/** Opens the study that `longfat explore` serves; shows its first mistake and the page's own scene if it cannot. */
export async function openServed(page: Shared): Promise<void> {
  const { name, text, note } = await servedStudy();
  try {
    const { scene, notes } = sceneOf(text, { ...page.scene, speed: SERVED_SPEED });
    await page.load(scene);
    page.show([`${name} is open.`, note, ...notes].filter((one) => one !== "").join(" "));
  } catch (error) {
    await page.load(page.scene);
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`);
  }
}

function picture({ charts, worlds, present }: Shared): string {
  const span = Math.max(...worlds.map((world) => 3 * theoryOf(present, world.name).baseRtt), 0.01);
  return pictureOf(charts, worlds, span);
}

async function captures(page: Shared): Promise<void> {
  const side = (document.getElementById("side") as HTMLSelectElement).value as Side;
  for (const [place, world] of page.worlds.entries()) {
    const file = await page.capture(place, side);
    save(`${world.name}.pcapng`, new Blob([file], { type: "application/octet-stream" }));
  }
}

/** Returns whether only this machine has this page. */
const isLocal = (): boolean => location.protocol === "file:" || location.hostname === "127.0.0.1";

async function copyLink(page: Shared): Promise<void> {
  const address = location.href.replace(/#.*/, "") + toHash(page.scene);
  const elsewhere = isLocal() ? " It opens on this machine. Elsewhere, longfat explore opens its part after #." : "";
  const copied = navigator.clipboard?.writeText(address).then(
    () => true,
    () => false,
  );
  page.show((await copied) ? `The link is copied.${elsewhere}` : `The link: ${address}${elsewhere && "\n"}${elsewhere.trim()}`);
}
