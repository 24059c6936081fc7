// The transports: a worker with the simulator as WebAssembly, and `longfat explore` with the native one.
import type { Reply, Request, Spec, Transport } from "./engine";
import { isNative } from "./native";
import type { Theory } from "./predictions";

declare global {
  /** The simulator's worker, which `simulator.js` starts before the page is ready. */
  var LONGFAT_WORKER: Worker | undefined;
}

class WasmTransport implements Transport {
  readonly name = "WebAssembly";
  readonly update = "Reload the page without the browser's cache (Ctrl+Shift+R). From disk, build it again: make explorer.";
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private count = 0;

  constructor(private readonly worker: Worker) {
    this.worker.onmessage = ({ data }: MessageEvent<{ number: number; reply: Reply }>) => {
      this.waiting.get(data.number)?.(data.reply);
      this.waiting.delete(data.number);
    };
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
  if (isNative()) return new HttpTransport();
  if (globalThis.LONGFAT_WORKER) return new WasmTransport(globalThis.LONGFAT_WORKER);
  throw new Error("This page has no simulator. Run make explorer with a WebAssembly toolchain, or open it with longfat explore.");
}
