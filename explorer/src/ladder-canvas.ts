// The ladder diagram: time runs down, and each packet is a line between the hosts.
import { ACK, LOSS, prepared, RETRANSMISSION, theme } from "./palette";
import { progress, waits, type Packet } from "./packets";
import type { World } from "./world";
import type { TraceEvent } from "./engine";

const MARGIN = 70;

interface Line {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  event: TraceEvent;
}

interface LadderView {
  /** The time that it shows, in seconds. */
  span: number;
  colour: string;
  /** The flow that it shows. */
  flow: number;
  /** Whether single packets are simulated. */
  packets: boolean;
}

/** Draws the last seconds of a flow, and returns the lines. */
export function drawLadder(canvas: HTMLCanvasElement, world: World, { span, colour, flow, packets }: LadderView): Line[] {
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
  if (!packets) {
    context.textAlign = "center";
    context.fillText("Slow down to see packets", width / 2, height / 2);
    return [];
  }
  const lines: Line[] = [];
  const shown: Packet[] = [...world.packets.inside.values()].filter(({ event }) => event.flow === flow);
  const { finished } = world.packets;
  for (let index = finished.length - 1; index >= 0 && shown.length < 3000; index -= 1) {
    const packet = finished[index]!;
    if ((packet.dropped?.time ?? packet.received ?? from) < from) break;
    if (packet.event.flow === flow) shown.push(packet);
  }
  for (const packet of shown) {
    const { event } = packet;
    const [near, far] = event.direction === "forward" ? [left, right] : [right, left];
    const points = since(from, wayOf(packet, world)).map(([time, share]) => ({ x: near + (far - near) * share, y: y(time) }));
    context.strokeStyle = packet.dropped ? LOSS : event.retransmission ? RETRANSMISSION : event.length ? colour : ACK;
    context.setLineDash(event.retransmission ? [6, 3] : []);
    context.beginPath();
    points.forEach((point, place) => (place === 0 ? context.moveTo(point.x, point.y) : context.lineTo(point.x, point.y)));
    context.stroke();
    for (let place = 1; place < points.length; place += 1) {
      const [a, b] = [points[place - 1]!, points[place]!];
      lines.push({ x1: a.x, y1: a.y, x2: b.x, y2: b.y, event });
    }
    const end = points[points.length - 1];
    if (!end) continue;
    if (packet.dropped) {
      context.fillStyle = LOSS;
      context.fillText("✕", end.x - 4, end.y + 4);
    }
  }
  context.setLineDash([]);
  return lines;
}

/** Returns the part of a way from a time on: packets that were sent earlier cross the upper edge. */
function since(from: number, way: [number, number][]): [number, number][] {
  const first = way.findIndex(([time]) => time >= from);
  if (first <= 0) return first < 0 ? [] : way;
  const [[t0, s0], [t1, s1]] = [way[first - 1]!, way[first]!];
  return [[from, s0 + ((s1 - s0) * (from - t0)) / Math.max(1e-12, t1 - t0)], ...way.slice(first)];
}

/** Returns times and shares of the way of a packet so far: it waits at the near end of each link. */
function wayOf(packet: Packet, world: World): [number, number][] {
  const until = packet.dropped?.time ?? packet.received ?? world.now;
  const count = Math.max(1, packet.received === undefined ? world.packets.hops(packet.event) : packet.hops.length);
  const points: [number, number][] = [[packet.event.time, 0]];
  packet.hops.forEach((hop, place) => {
    if (hop.entered > until) return;
    points.push([Math.min(until, hop.start ?? until), place / count]);
    if (!waits(hop, until)) points.push([Math.min(until, hop.arrival!), (place + progress(hop, until)) / count]);
  });
  return points;
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
