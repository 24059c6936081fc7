// Packets of a drawing by keyboard: the arrow keys choose the previous and the next one.
import type { TraceEvent } from "./engine";

/** A drawn packet, and its place in the order of the arrow keys. */
export interface Choosable {
  event: TraceEvent;
  order: number;
}

/** Makes a canvas focusable. The arrow keys call `choose` with the neighbour of the last choice. */
export function choosePacketsByKeys(
  canvas: HTMLCanvasElement,
  drawn: () => readonly Choosable[],
  choose: (event: TraceEvent) => void,
): void {
  let current: TraceEvent | undefined;
  canvas.tabIndex = 0;
  canvas.onkeydown = (pressed) => {
    const turn = pressed.key === "ArrowLeft" ? -1 : pressed.key === "ArrowRight" ? 1 : 0;
    if (turn === 0 || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    pressed.preventDefault();
    pressed.stopPropagation();
    const ordered = [...drawn()].sort((one, other) => one.order - other.order);
    if (ordered.length === 0) return;
    const place = ordered.findIndex(({ event }) => event === current);
    const next = place < 0 ? (turn > 0 ? 0 : ordered.length - 1) : (place + turn + ordered.length) % ordered.length;
    current = ordered[next]!.event;
    choose(current);
  };
}
