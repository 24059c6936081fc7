// The path: packets and ACKs on the links, the queue, drops, the sender's window and the receiver's buffer.
import type { TraceEvent } from "./engine";
import { ACK, LOSS, prepared, RECEIVED, RETRANSMISSION, theme } from "./palette";
import { last, type Packet, type World } from "./world";

const HOST = 64;
const QUEUE = 56;
const FALL_S = 0.6;

interface Spot {
  x: number;
  y: number;
  event: TraceEvent;
  small?: boolean;
}

export interface PathView {
  colour: string;
  /** Limit of the queue in packets, or 0. */
  limit: number;
  /** Whether single packets are simulated in detail. */
  packets: boolean;
  /** Virtual seconds per second, for the fall of dropped packets. */
  speed: number;
  chosen?: TraceEvent | undefined;
}

/** Draws a world, and returns the places of its packets. */
export function drawPath(canvas: HTMLCanvasElement, world: World, view: PathView): Spot[] {
  const { context, width, height } = prepared(canvas);
  const colours = theme();
  const spots: Spot[] = [];
  const [data, acks] = [44, 86];
  const [left, right] = [HOST + QUEUE + 8, width - HOST - 4];
  context.strokeStyle = colours.line;
  context.lineWidth = 1.5;
  for (const y of [data, acks]) {
    context.beginPath();
    context.moveTo(y === data ? left : HOST, y);
    context.lineTo(right, y);
    context.stroke();
  }
  host(context, 2, "Sender", colours.text, colours.line);
  host(context, width - HOST, "Receiver", colours.text, colours.line);
  const queued: Packet[] = [];
  for (const packet of world.packets.values()) {
    const forward = packet.event.direction === "forward";
    if (packet.start > world.now) {
      if (forward) queued.push(packet);
      continue;
    }
    const share = Math.min(1, (world.now - packet.start) / Math.max(1e-9, packet.arrival - packet.start));
    const x = forward ? left + (right - left) * share : right - (right - HOST) * share;
    spots.push({ x, y: forward ? data : acks, event: packet.event });
  }
  drawQueue(context, view, view.packets ? queued.length : (last(world.columns.queue) ?? 0), colours);
  queued.slice(0, 200).forEach((packet, place) => {
    const slot = Math.min(place, 50);
    spots.push({ x: HOST + QUEUE - 4 - (slot % 10) * 5, y: 34 + Math.floor(slot / 10) * 5, event: packet.event, small: true });
  });
  for (const spot of spots) drawPacket(context, spot, view.colour, spot.event === view.chosen);
  drawDrops(context, world, view, { left, right, data, acks }, spots);
  if (!view.packets) note(context, (left + right) / 2, data - 12, "Slow down to see packets", colours.faint);
  if (view.packets) drawStream(context, world, view, width, height, colours.text, colours.faint);
  return spots;
}

function host(context: CanvasRenderingContext2D, x: number, label: string, text: string, line: string): void {
  context.strokeStyle = line;
  context.strokeRect(x, 26, HOST - 2, 78);
  context.fillStyle = text;
  context.textAlign = "center";
  context.fillText(label, x + HOST / 2 - 1, 70);
}

function drawQueue(
  context: CanvasRenderingContext2D,
  view: PathView,
  packets: number,
  colours: { text: string; faint: string; line: string },
): void {
  context.strokeStyle = colours.line;
  context.strokeRect(HOST + 4, 30, QUEUE - 2, 28);
  if (view.limit > 0) {
    context.globalAlpha = 0.25;
    context.fillStyle = view.colour;
    const share = Math.min(1, packets / view.limit);
    context.fillRect(HOST + 4 + (QUEUE - 2) * (1 - share), 30, (QUEUE - 2) * share, 28);
    context.globalAlpha = 1;
  }
  note(context, HOST + 4 + QUEUE / 2, 20, `queue ${packets}`, colours.text);
}

function note(context: CanvasRenderingContext2D, x: number, y: number, text: string, colour: string): void {
  context.fillStyle = colour;
  context.textAlign = "center";
  context.fillText(text, x, y);
}

function drawPacket(context: CanvasRenderingContext2D, { x, y, event, small }: Spot, colour: string, chosen: boolean): void {
  const isData = (event.length ?? 0) > 0;
  context.fillStyle = event.retransmission ? RETRANSMISSION : isData ? colour : ACK;
  context.beginPath();
  if (small) context.rect(x - 2, y - 2, 4, 4);
  else if (event.retransmission) {
    context.moveTo(x, y - 7);
    context.lineTo(x + 6, y);
    context.lineTo(x, y + 7);
    context.lineTo(x - 6, y);
  } else if (isData) context.rect(x - 3, y - 6, 6, 12);
  else context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fill();
  if (chosen) {
    context.strokeStyle = LOSS;
    context.lineWidth = 2;
    context.strokeRect(x - 8, y - 10, 16, 20);
  }
}

function drawDrops(
  context: CanvasRenderingContext2D,
  world: World,
  view: PathView,
  place: { left: number; right: number; data: number; acks: number },
  spots: Spot[],
): void {
  const fall = FALL_S * view.speed;
  for (let index = world.finished.length - 1; index >= Math.max(0, world.finished.length - 400); index -= 1) {
    const packet = world.finished[index]!;
    if (!packet.dropped) continue;
    const share = (world.now - packet.dropped.time) / fall;
    if (share > 1) continue;
    const forward = packet.event.direction === "forward";
    const x = forward ? HOST + QUEUE / 2 : place.right - 8;
    const y = (forward ? place.data : place.acks) + 24 * share;
    spots.push({ x, y, event: packet.event });
    context.strokeStyle = LOSS;
    context.globalAlpha = 1 - share * 0.7;
    context.lineWidth = 2.5;
    context.beginPath();
    context.moveTo(x - 5, y - 5);
    context.lineTo(x + 5, y + 5);
    context.moveTo(x + 5, y - 5);
    context.lineTo(x - 5, y + 5);
    context.stroke();
    context.globalAlpha = 1;
  }
}

/** The byte stream around the sender's window: the sender's view above, the receiver's below. */
function drawStream(
  context: CanvasRenderingContext2D,
  world: World,
  view: PathView,
  width: number,
  height: number,
  text: string,
  faint: string,
): void {
  const top = height - 62;
  context.textAlign = "left";
  context.fillStyle = text;
  context.fillText("sent", 2, top + 13);
  context.fillText("received", 2, top + 35);
  const sequences = [...world.segments.keys()].filter((sequence) => sequence >= world.acknowledged);
  sequences.sort((a, b) => a - b);
  const [start, room] = [HOST + 4, width - HOST - 8];
  const cwnd = Math.max(1, Math.round(last(world.columns.cwnd) ?? 1));
  const cells = Math.max(sequences.length, cwnd, 10);
  const cell = Math.min(14, room / cells);
  const gap = cell > 4 ? 1 : 0;
  for (let place = 0; place < Math.min(cells, Math.floor(room / cell)); place += 1) {
    const segment = world.segments.get(sequences[place] ?? -1);
    const x = start + place * cell;
    context.fillStyle = faint;
    context.globalAlpha = 0.25;
    context.fillRect(x, top + (place < cwnd ? 3 : 11), cell - gap, place < cwnd ? 12 : 4);
    context.fillRect(x, top + 25, cell - gap, 12);
    context.globalAlpha = 1;
    if (!segment) continue;
    context.fillStyle = segment.lost ? LOSS : segment.retransmissions > 0 ? RETRANSMISSION : view.colour;
    context.fillRect(x, top + 3, cell - gap, 12);
    if (segment.received) {
      context.fillStyle = RECEIVED;
      context.fillRect(x, top + 25, cell - gap, 12);
    }
  }
  context.fillStyle = faint;
  context.fillText(`unacknowledged data of flow 1, cwnd = ${cwnd} packets`, start, height - 6);
}
