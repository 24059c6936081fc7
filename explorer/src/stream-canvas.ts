// The byte stream around the window of the first measured flow: the sender's view above, the receiver's below.
import { LOSS, RECEIVED, RETRANSMISSION, theme } from "./palette";
import { last, type World } from "./world";

const LEFT = 68;
/** In less room, the legend is short. */
const NARROW = 200;

/** Height of the drawing in pixels. */
export const STREAM_HEIGHT = 66;

/** Draws the window of each subflow and the data that waits at the receiver, in packets. */
export function drawSubflows(context: CanvasRenderingContext2D, world: World, colour: string, width: number, height: number): void {
  const { text, faint } = theme();
  const top = height - 62;
  const room = width - LEFT - 4;
  const early = last(world.early) ?? 0;
  const shown = [...world.subflows].sort((one, other) => one.path - other.path).slice(0, 3);
  const most = Math.max(10, early, ...shown.map(({ cwnd, inFlight }) => Math.max(last(cwnd) ?? 0, last(inFlight) ?? 0)));
  const pitch = Math.min(15, 48 / (shown.length + 1));
  context.textAlign = "left";
  const row = (number: number, label: string, filled: number, outline: number, fill: string): void => {
    const y = top + number * pitch;
    context.fillStyle = text;
    context.fillText(label, 2, y + 10);
    context.fillStyle = faint;
    context.globalAlpha = 0.25;
    context.fillRect(LEFT, y + 2, (room * outline) / most, pitch - 4);
    context.globalAlpha = 1;
    context.fillStyle = fill;
    context.fillRect(LEFT, y + 2, (room * filled) / most, pitch - 4);
  };
  shown.forEach(({ path, cwnd, inFlight }, number) => row(number, `path ${path + 1}`, last(inFlight) ?? 0, last(cwnd) ?? 0, colour));
  row(shown.length, "waiting", early, 0, RECEIVED);
  context.fillStyle = faint;
  const legend = `in flight of cwnd; ${early.toFixed(0)} packets wait for earlier data`;
  context.fillText(legend, LEFT, height - 6, room);
}

/** Draws the stream at the bottom of a canvas. */
export function drawStream(context: CanvasRenderingContext2D, world: World, colour: string, width: number, height: number): void {
  const { text, faint } = theme();
  const top = height - 62;
  context.textAlign = "left";
  context.fillStyle = text;
  context.fillText("sent", 2, top + 13);
  context.fillText("received", 2, top + 35);
  const sequences = [...world.segments.keys()].filter((sequence) => sequence >= world.acknowledged);
  sequences.sort((a, b) => a - b);
  const room = width - LEFT - 4;
  const cwnd = Math.max(1, Math.round(last(world.columns.cwnd) ?? 1));
  const cells = Math.max(sequences.length, cwnd, 10);
  const cell = Math.min(14, room / cells);
  const gap = cell > 4 ? 1 : 0;
  for (let place = 0; place < Math.min(cells, Math.floor(room / cell)); place += 1) {
    const segment = world.segments.get(sequences[place] ?? -1);
    const x = LEFT + place * cell;
    context.fillStyle = faint;
    context.globalAlpha = 0.25;
    context.fillRect(x, top + (place < cwnd ? 3 : 11), cell - gap, place < cwnd ? 12 : 4);
    context.fillRect(x, top + 25, cell - gap, 12);
    context.globalAlpha = 1;
    if (!segment) continue;
    context.fillStyle = segment.lost ? LOSS : segment.retransmissions > 0 ? RETRANSMISSION : colour;
    context.fillRect(x, top + 3, cell - gap, 12);
    if (segment.received) {
      context.fillStyle = RECEIVED;
      context.fillRect(x, top + 25, cell - gap, 12);
    }
  }
  context.fillStyle = faint;
  const what = room < NARROW ? "" : `unacknowledged data of flow ${world.groups.main + 1}, `;
  context.fillText(`${what}cwnd = ${cwnd}`, LEFT, height - 6, room);
}
