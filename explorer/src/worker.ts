// The worker: compiles the simulator and answers one request after the other.

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  call(address: number, length: number): number;
  reply_length(): number;
}

type Message = { wasm: Uint8Array<ArrayBuffer> } | { number: number; request: unknown };

let simulator: Promise<Exports> | undefined;

async function compile(wasm: Uint8Array<ArrayBuffer>): Promise<Exports> {
  const { instance } = await WebAssembly.instantiate(wasm, {});
  return instance.exports as unknown as Exports;
}

function call(exports: Exports, request: unknown): unknown {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const address = exports.reserve(bytes.length);
  new Uint8Array(exports.memory.buffer, address, bytes.length).set(bytes);
  const reply = exports.call(address, bytes.length);
  return JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, reply, exports.reply_length())));
}

self.onmessage = async ({ data }: MessageEvent<Message>) => {
  if ("wasm" in data) {
    simulator = compile(data.wasm);
    return;
  }
  let reply: unknown;
  try {
    reply = call(await simulator!, data.request);
  } catch (error) {
    reply = { error: `the simulator stopped: ${error instanceof Error ? error.message : error}` };
  }
  self.postMessage({ number: data.number, reply });
};
