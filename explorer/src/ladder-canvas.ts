// The ladder diagram: time runs down, and each packet is a line between the hosts.
import { ACK, LOSS, prepared, RETRANSMISSION, theme } from "./palette";
import type { Packet, World } from "./world";
import type { TraceEvent } from "./engine";

const MARGIN = 60;

interface Line {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  event: TraceEvent;
}

/** Draws the last `span` seconds, and returns the lines. */
export function drawLadder(canvas: HTMLCanvasElement, world: World, span: number, colour: string): Line[] {
  const { context, width, height } = prepared(canvas);
  const colours = theme();
  const from = Math.max(0, world.now - span);
  const y = (time: number): number => 20 + ((time - from) / span) * (height - 26);
  const [left, right] = [MARGIN, width - MARGIN];
  context.strokeStyle = colours.line;
  context.fillStyle = colours.text;
  for (const [x, label] of [
    [left, "Sender"],
    [right, "Receiver"],
  ] as const) {
    context.textAlign = "center";
    context.fillText(label, x, 13);
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, height);
    context.stroke();
  }
  context.textAlign = "left";
  context.fillStyle = colours.faint;
  for (let tick = 0; tick < 4; tick += 1) {
    const time = from + (span * tick) / 4;
    context.fillText(`${(time * 1e3).toFixed(0)} ms`, 2, y(time) + 12);
  }
  const lines: Line[] = [];
  const shown: Packet[] = [...world.packets.values()];
  for (let index = world.finished.length - 1; index >= 0 && shown.length < 3000; index -= 1) {
    const packet = world.finished[index]!;
    if (packet.event.time < from - span) break;
    shown.push(packet);
  }
  for (const packet of shown) {
    const { event } = packet;
    if (event.time < from) continue;
    const [near, far] = event.direction === "forward" ? [left, right] : [right, left];
    const whole = packet.received ?? packet.arrival;
    const share = packet.dropped ? 0.35 : Math.min(1, (world.now - event.time) / (whole - event.time));
    const end = event.time + (whole - event.time) * share;
    const line = { x1: near, y1: y(event.time), x2: near + (far - near) * share, y2: y(end), event };
    lines.push(line);
    context.strokeStyle = packet.dropped ? LOSS : event.retransmission ? RETRANSMISSION : event.length ? colour : ACK;
    context.setLineDash(event.retransmission ? [6, 3] : []);
    context.beginPath();
    context.moveTo(line.x1, line.y1);
    context.lineTo(line.x2, line.y2);
    context.stroke();
    if (packet.dropped) {
      context.fillStyle = LOSS;
      context.fillText("✕", line.x2 - 4, line.y2 + 4);
    }
  }
  context.setLineDash([]);
  return lines;
}

/** Returns the packet of the line next to a point, within 8 pixels. */
export function nearestLine(lines: readonly Line[], x: number, y: number): TraceEvent | undefined {
  let found: { distance: number; event: TraceEvent } | undefined;
  for (const { x1, y1, x2, y2, event } of lines) {
    const length = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
    const share = Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length));
    const distance = Math.hypot(x - x1 - share * (x2 - x1), y - y1 - share * (y2 - y1));
    if (distance < (found?.distance ?? 8)) found = { distance, event };
  }
  return found?.event;
}
