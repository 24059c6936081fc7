// Builds the page into a folder that needs no server: classic scripts, and the simulator as text.
// Usage: node build.mjs FOLDER [explorer.wasm]
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, wasm] = process.argv.slice(2);
if (!folder) throw new Error("usage: node build.mjs FOLDER [explorer.wasm]");
mkdirSync(folder, { recursive: true });

const shared = { bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none" };
const worker = await build({ ...shared, entryPoints: ["src/worker.ts"], write: false });
await build({
  ...shared,
  entryPoints: ["src/main.ts"],
  outfile: join(folder, "explorer.js"),
  define: {
    WORKER_SOURCE: JSON.stringify(worker.outputFiles[0].text),
    INTERFACE: readFileSync("../crates/explorer/src/interface.txt", "utf8").trim(),
  },
});
const uplot = readFileSync("node_modules/uplot/dist/uPlot.min.css", "utf8");
writeFileSync(join(folder, "explorer.css"), uplot + readFileSync("src/style.css", "utf8"));
copyFileSync("src/index.html", join(folder, "index.html"));

const simulator = join(folder, "simulator.js");
if (wasm) writeFileSync(simulator, `globalThis.LONGFAT_SIMULATOR="${readFileSync(wasm).toString("base64")}";\n`);
else writeFileSync(simulator, "// Built without a WebAssembly toolchain.\n");
