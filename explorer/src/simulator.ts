// The end of `simulator.js`: starts the worker while the page is still loading.
import { isNative } from "./native";

declare const WORKER_SOURCE: string;
declare global {
  /** WebAssembly, compressed with gzip, in base64. */
  var LONGFAT_SIMULATOR: string;
}

if (!isNative()) {
  const source = new Blob([WORKER_SOURCE], { type: "text/javascript" });
  globalThis.LONGFAT_WORKER = new Worker(URL.createObjectURL(source));
  globalThis.LONGFAT_WORKER.postMessage({ encoded: globalThis.LONGFAT_SIMULATOR });
}
