// The transports: a worker with the simulator as WebAssembly, and `longfat explore` with the native one.
import type { Reply, Request, Spec, Transport } from "./engine";
import type { Theory } from "./predictions";

declare const WORKER_SOURCE: string;
declare global {
  var LONGFAT_SIMULATOR: string | undefined;
}

class WasmTransport implements Transport {
  readonly name = "WebAssembly";
  readonly update = "Reload the page without the browser's cache (Ctrl+Shift+R). From disk, build it again: make explorer.";
  private readonly worker: Worker;
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private count = 0;

  constructor(encoded: string) {
    const source = new Blob([WORKER_SOURCE], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(source));
    this.worker.onmessage = ({ data }: MessageEvent<{ number: number; reply: Reply }>) => {
      this.waiting.get(data.number)?.(data.reply);
      this.waiting.delete(data.number);
    };
    const text = atob(encoded);
    const wasm = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) wasm[place] = text.charCodeAt(place);
    this.worker.postMessage({ wasm }, [wasm.buffer]);
  }

  send(request: Request): Promise<Reply> {
    const number = (this.count += 1);
    return new Promise((done) => {
      this.waiting.set(number, done);
      this.worker.postMessage({ number, request });
    });
  }
}

class HttpTransport implements Transport {
  readonly name = "native";
  readonly update = "Install longfat again, or in a checkout run make setup and make explorer. Then start longfat explore again.";

  /** Requests closed forms from the project's theory in Python. */
  async theory(spec: Spec): Promise<Theory | null> {
    const response = await fetch("theory", { method: "POST", body: JSON.stringify(spec) });
    const reply = (await response.json()) as { ok?: Theory };
    return reply.ok ?? null;
  }

  async send(request: Request): Promise<Reply> {
    try {
      const response = await fetch("call", { method: "POST", body: JSON.stringify(request) });
      return (await response.json()) as Reply;
    } catch {
      return { error: "longfat explore does not answer: start it again and open its new address" };
    }
  }
}

/** Returns the simulator of this page. */
export function transport(): Transport {
  const native = new URLSearchParams(location.search).get("engine") === "native";
  if (native) return new HttpTransport();
  if (globalThis.LONGFAT_SIMULATOR) return new WasmTransport(globalThis.LONGFAT_SIMULATOR);
  throw new Error("This page has no simulator. Run make explorer with a WebAssembly toolchain, or open it with longfat explore.");
}
