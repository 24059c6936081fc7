// The path: hosts, links with packets and ACKs, queues, and drops.
import type { NetworkShape, TraceEvent } from "./engine";
import type { Handle } from "./handles";
import { layoutOf, type Box, type Layout, type LinkPlace, type Sizes } from "./layout";
import { hopAt, progress, waits, type Hop, type Packet } from "./packets";
import { lossKind, type LossKind } from "./losses";
import { ACK, flowColour, LOSS, prepared, RETRANSMISSION, theme } from "./palette";
import { gridOf, type Grid } from "./queue-grid";
import { drawStream, drawSubflows } from "./stream-canvas";
import type { World } from "./world";

const FALL_S = 0.6;
const ROWS = 5;
/** Room that a queue without a limit in packets has at least. */
const UNLIMITED = 50;

export interface Spot {
  x: number;
  y: number;
  packet: Packet;
  /** Side of a waiting packet. */
  side?: number;
}

export interface PathView extends Sizes {
  colour: string;
  handles: readonly Handle[];
  /** The handle that the reader drags, and the setting at its place. */
  dragged: { key: string; value: string } | undefined;
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
  const layout = pathLayout(world.network, width, view);
  const spots: Spot[] = [];
  drawNetwork(context, layout);
  const queued = layout.links.map((): Waiting[] => []);
  for (const packet of world.packets.inside.values()) {
    const hop = hopAt(packet, world.now);
    const place = hop && layout.links[hop.link];
    if (!place) continue;
    if (waits(hop, world.now)) queued[hop.link]!.push({ packet, start: startOf(hop) });
    else spots.push({ ...along(place, progress(hop, world.now)), packet });
  }
  layout.links.forEach((place, link) => {
    const waiting = queued[link]!.sort((a, b) => a.start - b.start).map(({ packet }) => packet);
    const limit = view.limits[world.network.bottlenecks.indexOf(link)] ?? 0;
    if (waiting.length > 0) spots.push(...queueSpots(place, waiting, view.byFlow, limit));
    if (place.queue) drawQueue(context, place.queue, view, limit, view.packets ? waiting.length : world.queueOf(link));
  });
  for (const spot of spots) drawPacket(context, spot, world, view);
  drawDrops(context, world, view, layout, spots);
  drawHandles(context, view.handles, view.dragged);
  if (!view.packets) note(context, width - 84, 11, "Slow down to see packets", theme().faint);
  if (world.subflows.length > 0) drawSubflows(context, world, view.colour, width, height);
  else if (view.packets) drawStream(context, world, view.colour, width, height);
  return spots;
}

interface Waiting {
  packet: Packet;
  start: number;
}

/** Returns the start of a hop's transmission; packets whose start is undecided keep their order behind the others. */
const startOf = (hop: Hop): number => hop.start ?? 1e9 + hop.entered;

/** The latest layout of each network. */
const layouts = new WeakMap<NetworkShape, { key: string; layout: Layout }>();

/** Returns the layout for a width and the settings that lengths stand for. */
export function pathLayout(network: NetworkShape, width: number, { limits, delay }: Sizes): Layout {
  const key = `${width} ${limits.join()} ${delay}`;
  const known = layouts.get(network);
  if (known?.key === key) return known.layout;
  const layout = layoutOf(network, width, { limits, delay });
  layouts.set(network, { key, layout });
  return layout;
}

/** Draws two lines on each handle, brighter on the dragged one, and its setting. */
function drawHandles(context: CanvasRenderingContext2D, handles: readonly Handle[], dragged: PathView["dragged"]): void {
  context.strokeStyle = theme().text;
  context.lineWidth = 1.5;
  for (const { key, x, top, bottom } of handles) {
    context.globalAlpha = key === dragged?.key ? 1 : 0.6;
    if (key === "delay" && dragged?.key === key) note(context, x - 30, top - 5, `delay ${dragged.value}`, theme().text);
    // The receiver's name is in the middle of its box.
    const middle = key === "delay" ? bottom - 8 : (top + bottom) / 2;
    for (const side of [-1.5, 1.5]) {
      context.beginPath();
      context.moveTo(x + side, middle - 6);
      context.lineTo(x + side, middle + 6);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
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

function drawQueue(context: CanvasRenderingContext2D, box: Box, view: PathView, limit: number, packets: number): void {
  const colours = theme();
  context.strokeStyle = colours.line;
  context.lineWidth = 1.5;
  context.strokeRect(box.x, box.y, box.width - 2, box.height);
  if (limit > 0) {
    context.globalAlpha = 0.25;
    context.fillStyle = view.colour;
    const share = Math.min(1, packets / limit);
    context.fillRect(box.x + (box.width - 2) * (1 - share), box.y, (box.width - 2) * share, box.height);
    context.globalAlpha = 1;
  }
  const { each } = gridOf(inner(box).width, inner(box).height, limit || UNLIMITED);
  const scale = view.packets && !view.byFlow && each > 1 ? `, dots of ${each}` : "";
  const text = limit > 0 ? `queue ${packets} of ${limit}${scale}` : `queue ${packets}`;
  context.textAlign = "left";
  context.fillStyle = colours.text;
  context.fillText(text, box.x, box.y - 5);
}

/** Returns the room inside of a queue's box. */
const inner = ({ x, y, width, height }: Box): Box => ({ x: x + 2, y: y + 2, width: width - 4, height: height - 4 });

/** Returns the grid of a discipline with one queue for each flow. */
function rowsOfFlows(width: number, height: number): Grid {
  const side = height / ROWS;
  return { rows: ROWS, columns: Math.floor(width / side), side, pitch: side, each: 1 };
}

/**
 * Places waiting packets from the exit of the queue, in columns. The box has room for exactly its limit, so its filled part is to
 * scale; if it is too small for one square per packet, each square is the first of several. With one queue for each flow, rows are
 * flows, and full rows overlap at the entry.
 */
function queueSpots(place: LinkPlace, waiting: readonly Packet[], byFlow: boolean, limit: number): Spot[] {
  const flows = [...new Set(waiting.map(({ event }) => event.flow))].sort((a, b) => a - b);
  const box = place.queue ?? { x: place.x1 - (place.forward ? 56 : 0), y: place.y1 - (place.forward ? 26 : -2), width: 56, height: 24 };
  const { width, height } = inner(box);
  const { rows, columns, side, pitch, each } = byFlow ? rowsOfFlows(width, height) : gridOf(width, height, limit || Math.max(UNLIMITED, waiting.length));
  const exit = place.forward ? box.x + width : box.x + 2;
  const away = place.forward ? -1 : 1;
  const most = columns * rows;
  const lengths = new Map<number, number>();
  const shown = each === 1 ? waiting : waiting.filter((_, number) => number % each === 0);
  return shown.map((packet, number) => {
    const row = byFlow ? Math.min(flows.indexOf(packet.event.flow), ROWS - 1) : number % rows;
    const before = byFlow ? (lengths.get(row) ?? 0) : Math.floor(Math.min(number, most - 1) / rows);
    lengths.set(row, before + 1);
    const column = Math.min(before, columns - 1);
    return { x: exit + away * (column + 0.5) * pitch, y: box.y + 2 + (row + 0.5) * side, packet, side };
  });
}

function note(context: CanvasRenderingContext2D, x: number, y: number, text: string, colour: string): void {
  context.fillStyle = colour;
  context.textAlign = "center";
  context.fillText(text, x, y);
}

function drawPacket(context: CanvasRenderingContext2D, { x, y, packet, side }: Spot, world: World, view: PathView): void {
  const { event } = packet;
  const isData = (event.length ?? 0) > 0;
  const own = world.flows.length > 1 || world.groups.several ? flowColour(event.flow) : view.colour;
  context.fillStyle = event.retransmission ? RETRANSMISSION : isData ? own : ACK;
  // Queues hold most packets; a rectangle without a path draws fastest.
  if (side !== undefined) context.fillRect(x - side / 2, y - side / 2, Math.max(0.7, side - 1), Math.max(0.7, side - 1));
  else drawMoving(context, x, y, event.retransmission === true, isData);
  if (packet.condemned) cross(context, x, y, side === undefined ? 7 : 3);
  if (event.id === view.chosen?.id && event.time === view.chosen?.time) {
    context.strokeStyle = theme().text;
    context.lineWidth = 2;
    context.strokeRect(x - 8, y - 10, 16, 20);
  }
}

/** Draws a packet on a link: a diamond for a retransmission, a bar for data, a dot for an ACK. */
function drawMoving(context: CanvasRenderingContext2D, x: number, y: number, again: boolean, isData: boolean): void {
  context.beginPath();
  if (again) {
    context.moveTo(x, y - 7);
    context.lineTo(x + 6, y);
    context.lineTo(x, y + 7);
    context.lineTo(x - 6, y);
  } else if (isData) context.rect(x - 3, y - 6, 6, 12);
  else context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fill();
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, size: number, colour = LOSS): void {
  context.strokeStyle = colour;
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
  for (let index = finished.length - 1; index >= 0; index -= 1) {
    const packet = finished[index]!;
    // Packets finish in the order of time.
    if (world.now - (packet.dropped?.time ?? packet.received ?? 0) > fall) break;
    if (!packet.dropped) continue;
    const share = (world.now - packet.dropped.time) / fall;
    if (share > 1) continue;
    const hop = hopAt(packet, packet.dropped.time) ?? packet.hops[0];
    const place = layout.links[hop?.link ?? firstLink(world, packet)];
    if (!place) continue;
    const kind = lossKind({ ...packet.event, reason: packet.dropped.reason });
    // A packet that the queue drops falls out of it. A lost one vanishes where it is lost.
    const at = kind === "queue" || !place.queue || (hop && !waits(hop, packet.dropped.time)) ? dropPlace(place, hop, packet.dropped.time) : entry(place.queue);
    const y = kind === "queue" ? at.y + 24 * share : at.y;
    spots.push({ x: at.x, y, packet });
    context.globalAlpha = 1 - share * 0.7;
    drawLoss(context, kind, at.x, y);
    context.globalAlpha = 1;
  }
}

/** Returns the entry of a queue, in front of which a link loses packets. */
const entry = ({ x, y, height }: Box): { x: number; y: number } => ({ x, y: y + height / 2 });

/** Draws a lost packet: a cross for a random loss, a triangle below a full queue, a small grey cross for an ACK. */
function drawLoss(context: CanvasRenderingContext2D, kind: LossKind, x: number, y: number): void {
  if (kind !== "queue") return cross(context, x, y, kind === "ack" ? 3 : 5, kind === "ack" ? ACK : LOSS);
  context.fillStyle = LOSS;
  context.beginPath();
  context.moveTo(x - 6, y - 5);
  context.lineTo(x + 6, y - 5);
  context.lineTo(x, y + 6);
  context.fill();
}

/** Returns the first link of a packet that is lost in front of it: one that leaves the node of its sender. */
function firstLink(world: World, { event }: Packet): number {
  const forward = event.direction === "forward";
  const [sender, receiver] = world.network.pairs[world.groups.pairOf(event.flow)] ?? world.network.pairs[0]!;
  return world.network.ends.findIndex(([from]) => from === (forward ? sender : receiver).node);
}

function dropPlace(place: LinkPlace, hop: Hop | undefined, time: number): { x: number; y: number } {
  if (hop && !waits(hop, time)) return along(place, progress(hop, time));
  const { queue } = place;
  return queue ? { x: queue.x + queue.width / 2, y: queue.y + queue.height / 2 } : { x: place.x1, y: place.y1 };
}
