// The path: hosts, links with packets and ACKs, queues, and drops.
import type { TraceEvent } from "./engine";
import { layoutOf, type Box, type Layout, type LinkPlace } from "./layout";
import { hopAt, progress, waits, type Hop, type Packet } from "./packets";
import { ACK, flowColour, LOSS, prepared, RETRANSMISSION, theme } from "./palette";
import { drawStream, drawSubflows } from "./stream-canvas";
import type { World } from "./world";

const FALL_S = 0.6;
const MOST_QUEUED = 200;
const [SLOTS, SLOT, ROWS] = [10, 5, 5];

export interface Spot {
  x: number;
  y: number;
  packet: Packet;
  small?: boolean;
}

export interface PathView {
  colour: string;
  /** Limit of the queue in packets, or 0. */
  limit: number;
  /** Whether the discipline has one queue for each flow. */
  byFlow: boolean;
  /** Whether single packets are simulated in detail. */
  packets: boolean;
  /** Virtual seconds per second, for the fall of dropped packets. */
  speed: number;
  chosen?: TraceEvent | undefined;
}

/** Draws a world, and returns the places of its packets. */
export function drawPath(canvas: HTMLCanvasElement, world: World, view: PathView): Spot[] {
  const { context, width, height } = prepared(canvas);
  const layout = layoutOf(world.network, width);
  const spots: Spot[] = [];
  drawNetwork(context, layout);
  const queued = layout.links.map((): Packet[] => []);
  for (const packet of world.packets.inside.values()) {
    const hop = hopAt(packet, world.now);
    const place = hop && layout.links[hop.link];
    if (!place) continue;
    if (waits(hop, world.now)) queued[hop.link]!.push(packet);
    else spots.push({ ...along(place, progress(hop, world.now)), packet });
  }
  layout.links.forEach((place, link) => {
    const waiting = queued[link]!.sort((a, b) => start(a, link) - start(b, link));
    if (place.queue) drawQueue(context, place.queue, view, view.packets ? waiting.length : world.queueOf(link));
    spots.push(...queueSpots(place, waiting, view.byFlow));
  });
  for (const spot of spots) drawPacket(context, spot, world, view);
  drawDrops(context, world, view, layout, spots);
  if (!view.packets) note(context, width - 84, 11, "Slow down to see packets", theme().faint);
  if (world.subflows.length > 0) drawSubflows(context, world, view.colour, width, height);
  else if (view.packets) drawStream(context, world, view.colour, width, height);
  return spots;
}

/** Returns the start of transmission on a link; packets whose start is undecided keep their order behind the others. */
function start(packet: Packet, link: number): number {
  const hop = packet.hops.find((one) => one.link === link);
  return hop?.start ?? 1e9 + (hop?.entered ?? 0);
}

function along({ x1, y1, x2, y2 }: LinkPlace, share: number): { x: number; y: number } {
  return { x: x1 + (x2 - x1) * share, y: y1 + (y2 - y1) * share };
}

function drawNetwork(context: CanvasRenderingContext2D, layout: Layout): void {
  const colours = theme();
  context.strokeStyle = colours.line;
  context.lineWidth = 1.5;
  for (const { x1, y1, x2, y2 } of layout.links) {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }
  for (const { x, y, width, height, label } of layout.nodes) {
    context.fillStyle = colours.panel;
    context.fillRect(x, y, width - 2, height);
    context.strokeRect(x, y, width - 2, height);
    if (label) note(context, x + width / 2 - 1, y + height / 2 + 4, label, colours.text);
  }
}

function drawQueue(context: CanvasRenderingContext2D, box: Box, view: PathView, packets: number): void {
  const colours = theme();
  context.strokeStyle = colours.line;
  context.lineWidth = 1.5;
  context.strokeRect(box.x, box.y, box.width - 2, box.height);
  if (view.limit > 0) {
    context.globalAlpha = 0.25;
    context.fillStyle = view.colour;
    const share = Math.min(1, packets / view.limit);
    context.fillRect(box.x + (box.width - 2) * (1 - share), box.y, (box.width - 2) * share, box.height);
    context.globalAlpha = 1;
  }
  note(context, box.x + box.width / 2, box.y - 5, `queue ${packets}`, colours.text);
}

/** Places waiting packets from the exit of the queue. Within a row the order is that of the queue. */
function queueSpots(place: LinkPlace, waiting: readonly Packet[], byFlow: boolean): Spot[] {
  const flows = [...new Set(waiting.map(({ event }) => event.flow))].sort((a, b) => a - b);
  const lengths = new Map<number, number>();
  return waiting.slice(0, MOST_QUEUED).map((packet, number) => {
    const row = byFlow ? Math.min(flows.indexOf(packet.event.flow), ROWS - 1) : Math.floor(Math.min(number, SLOTS * ROWS) / SLOTS);
    const before = lengths.get(row) ?? 0;
    lengths.set(row, before + 1);
    const column = Math.min(before, SLOTS - 1);
    const exit = place.queue ? place.queue.x + place.queue.width - 6 : place.x1;
    const away = place.forward ? -1 : 1;
    const top = place.queue ? place.queue.y + 4 : place.y1 - (place.forward ? 22 : -6);
    return { x: exit + away * column * SLOT, y: top + row * SLOT, packet, small: true };
  });
}

function note(context: CanvasRenderingContext2D, x: number, y: number, text: string, colour: string): void {
  context.fillStyle = colour;
  context.textAlign = "center";
  context.fillText(text, x, y);
}

function drawPacket(context: CanvasRenderingContext2D, { x, y, packet, small }: Spot, world: World, view: PathView): void {
  const { event } = packet;
  const isData = (event.length ?? 0) > 0;
  const own = world.flows.length > 1 || world.groups.several ? flowColour(event.flow) : view.colour;
  context.fillStyle = event.retransmission ? RETRANSMISSION : isData ? own : ACK;
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
  if (packet.condemned) cross(context, x, y, small ? 3 : 7);
  if (event.id === view.chosen?.id && event.time === view.chosen?.time) {
    context.strokeStyle = theme().text;
    context.lineWidth = 2;
    context.strokeRect(x - 8, y - 10, 16, 20);
  }
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  context.strokeStyle = LOSS;
  context.lineWidth = 2.5;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
}

function drawDrops(context: CanvasRenderingContext2D, world: World, view: PathView, layout: Layout, spots: Spot[]): void {
  const fall = FALL_S * view.speed;
  const { finished } = world.packets;
  for (let index = finished.length - 1; index >= Math.max(0, finished.length - 400); index -= 1) {
    const packet = finished[index]!;
    if (!packet.dropped) continue;
    const share = (world.now - packet.dropped.time) / fall;
    if (share > 1) continue;
    const hop = hopAt(packet, packet.dropped.time);
    const place = hop && layout.links[hop.link];
    if (!place) continue;
    const at = dropPlace(place, hop, packet.dropped.time);
    const y = at.y + 24 * share;
    spots.push({ x: at.x, y, packet });
    context.globalAlpha = 1 - share * 0.7;
    cross(context, at.x, y, 5);
    context.globalAlpha = 1;
  }
}

function dropPlace(place: LinkPlace, hop: Hop, time: number): { x: number; y: number } {
  if (!waits(hop, time)) return along(place, progress(hop, time));
  const { queue } = place;
  return queue ? { x: queue.x + queue.width / 2, y: queue.y + queue.height / 2 } : { x: place.x1, y: place.y1 };
}
