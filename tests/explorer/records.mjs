// Runs specifications, one in JSON per line of standard input, in the built simulator, and prints their records.
// Usage: node records.mjs simulator.js
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";

const encoded = /"([^"]*)"/.exec(readFileSync(process.argv[2], "utf8"))[1];
const compiled = await WebAssembly.compile(gunzipSync(Buffer.from(encoded, "base64")));
const start = async () => (await WebAssembly.instantiate(compiled, {})).exports;
let simulator = await start();

function run(spec) {
  const bytes = new TextEncoder().encode(JSON.stringify({ do: "run", spec }));
  const address = simulator.reserve(bytes.length);
  new Uint8Array(simulator.memory.buffer, address, bytes.length).set(bytes);
  const reply = simulator.call(address, bytes.length);
  return new TextDecoder().decode(new Uint8Array(simulator.memory.buffer, reply, simulator.reply_length()));
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(run(JSON.parse(line)));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
    simulator = await start();
  }
}
