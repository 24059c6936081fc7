// Builds the explorer and the page of qlog files into a folder that needs no server: classic scripts, and the simulator as text, compressed with gzip.
// Usage: node build.mjs FOLDER [explorer.wasm]
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [folder, wasm] = process.argv.slice(2);
if (!folder) throw new Error("usage: node build.mjs FOLDER [explorer.wasm]");
mkdirSync(folder, { recursive: true });

const shared = { bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none" };
await build({
  ...shared,
  entryPoints: ["src/main.ts"],
  outfile: join(folder, "explorer.js"),
  define: { INTERFACE: readFileSync("../crates/explorer/src/interface.txt", "utf8").trim() },
});
const uplot = readFileSync("node_modules/uplot/dist/uPlot.min.css", "utf8");
writeFileSync(join(folder, "explorer.css"), uplot + readFileSync("src/style.css", "utf8"));
copyFileSync("src/index.html", join(folder, "index.html"));
// The page that shows qlog files needs no simulator.
await build({ ...shared, entryPoints: ["src/log/page.ts"], outfile: join(folder, "log.js") });
copyFileSync("src/log/log.html", join(folder, "log.html"));

const simulator = join(folder, "simulator.js");
if (wasm) {
  const [worker] = (await build({ ...shared, entryPoints: ["src/worker.ts"], write: false })).outputFiles;
  const define = { WORKER_SOURCE: JSON.stringify(worker.text) };
  const [start] = (await build({ ...shared, entryPoints: ["src/simulator.ts"], write: false, define })).outputFiles;
  const packed = gzipSync(readFileSync(wasm), { level: 9 });
  writeFileSync(simulator, `globalThis.LONGFAT_SIMULATOR="${packed.toString("base64")}";\n${start.text}`);
} else writeFileSync(simulator, "// Built without a WebAssembly toolchain.\n");
