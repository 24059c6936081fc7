// The worker: decompresses and compiles the simulator, and answers one request after the other.

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  call(address: number, length: number): number;
  reply_length(): number;
}

declare global {
  interface Uint8ArrayConstructor {
    /** Not in all browsers. */
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  }
}

type Message = { encoded: string } | { number: number; request: unknown };

let simulator: Promise<Exports> | undefined;

/** Compiles the simulator from gzip in base64. Compilation starts with the first decompressed bytes. */
async function compile(encoded: string): Promise<Exports> {
  const packed = Uint8Array.fromBase64?.(encoded) ?? Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  const wasm = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const response = new Response(wasm, { headers: { "Content-Type": "application/wasm" } });
  const { instance } = await WebAssembly.instantiateStreaming(response, {});
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
  if ("encoded" in data) {
    simulator = compile(data.encoded);
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

export {};
