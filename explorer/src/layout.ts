// Places of nodes, links and queues in the path view.
import type { NetworkShape } from "./engine";
import { QUEUE_WIDTH as QUEUE, shareOf, WIDEST, widthOf } from "./handles";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface LinkPlace {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  /** Whether it carries data from senders to receivers. */
  forward: boolean;
  /** The box of the queue, at a bottleneck. */
  queue?: Box;
}

export interface NodePlace extends Box {
  label: string;
}

export interface Layout {
  nodes: NodePlace[];
  links: LinkPlace[];
  /** With one path, the places of the receiver with a link of no length and of the longest. */
  room?: { from: number; to: number };
  /** Factor of the widths of queues with one or two paths: less than 1 on a narrow canvas. */
  scale: number;
}

/** Settings that lengths stand for. */
export interface Sizes {
  /** Limit of the queue of each bottleneck in packets, or 0. */
  limits: readonly number[];
  /** Delay of the only path in s. */
  delay: number | undefined;
}

const TOP = 26;
const LANE = 78;
const ROW = 40;
const [HOST, SMALL_HOST, ROUTER] = [64, 44, 14];
/** On a canvas narrower than this, hosts and queues of paths are smaller, so that links have room. */
const NARROW = 300;
const [NARROW_HOST, NARROW_SCALE] = [26, 0.6];
/** Least length of a link in pixels, without its queue. */
const SHORTEST_LINK = 40;

/** Returns the nodes of the shortest route between two nodes. */
function route(network: NetworkShape, from: number, to: number): number[] {
  const before = new Map<number, number>([[from, from]]);
  const reached = [from];
  for (const node of reached) {
    for (const [near, far] of network.ends) {
      if (near !== node || before.has(far)) continue;
      before.set(far, node);
      reached.push(far);
    }
  }
  const found = [to];
  while (found[0] !== from && before.has(found[0]!)) found.unshift(before.get(found[0]!)!);
  return found;
}

/** Returns the column of each node: its distance from the first sender, and one before its router for the others. */
function columnsOf(network: NetworkShape): number[] {
  const columns = new Map<number, number>();
  for (const [sender, receiver] of network.pairs) {
    const nodes = route(network, sender.node, receiver.node);
    const known = nodes.findIndex((node) => columns.has(node));
    const start = known < 0 ? 0 : columns.get(nodes[known]!)! - known;
    nodes.forEach((node, place) => columns.has(node) || columns.set(node, start + place));
  }
  const first = Math.min(...columns.values());
  return network.nodes.map((_, node) => (columns.get(node) ?? first) - first);
}

/** Returns whether all hosts are at two nodes, which parallel paths join. */
const isPath = (network: NetworkShape): boolean => network.nodes.length === 2;

const lanesOf = (network: NetworkShape): number => network.ends.length / 2;

/** Returns the height of the network in pixels. */
export function heightOf(network: NetworkShape): number {
  if (isPath(network)) return TOP + lanesOf(network) * LANE;
  const columns = columnsOf(network);
  const most = Math.max(...columns.map((column) => columns.filter((other) => other === column).length));
  return TOP + Math.max(2, most) * ROW;
}

/** Returns the least width of the network in pixels: links have room for their queue and some packets. */
export function leastWidthOf(network: NetworkShape): number {
  if (isPath(network)) return HOST;
  const columns = columnsOf(network);
  // Routers inside a dumbbell have no hosts.
  const inner = network.nodes.some((_, node) => columns[node]! > 0 && columns[node]! < Math.max(...columns) && hostsAt(network, node).length > 0);
  return SMALL_HOST + Math.max(...columns) * ((inner ? SMALL_HOST : ROUTER) + QUEUE + SHORTEST_LINK);
}

/** Returns the names of the hosts at a node. */
function hostsAt(network: NetworkShape, node: number): string[] {
  const names = network.pairs.flat().filter((host) => host.node === node).map(({ name }) => name);
  return [...new Set(names)].sort();
}

/** Returns the places for a canvas of this width. */
export function layoutOf(network: NetworkShape, width: number, { limits, delay }: Sizes = { limits: [], delay: undefined }): Layout {
  const columns = columnsOf(network);
  const height = heightOf(network) - TOP;
  const last = Math.max(...columns, 1);
  const wide = isPath(network);
  const narrow = wide && width < NARROW;
  const scale = narrow ? NARROW_SCALE : 1;
  const host = narrow ? NARROW_HOST : HOST;
  const nodes = network.nodes.map((_, node): NodePlace => {
    const names = hostsAt(network, node);
    const column = columns[node]!;
    const same = columns.flatMap((other, place) => (other === column ? [place] : []));
    const isHost = names.length > 0;
    const own = wide ? host : isHost ? SMALL_HOST : ROUTER;
    const high = wide ? height : isHost ? 24 : 30;
    const middle = TOP + (height * (same.indexOf(node) + 0.5)) / same.length;
    const x = column === 0 ? 2 : column === last ? width - own - 2 : 2 + ((width - 4 - own) * column) / last;
    const side = column === 0 ? "Sender" : "Receiver";
    const label = narrow ? side[0]! : wide ? side : names.length > 2 ? `${names[0]}–${names.at(-1)}` : names.join(" ");
    return { x, y: middle - high / 2, width: own, height: high, label };
  });
  const room = wide && delay !== undefined ? { from: 2 + host + scale * WIDEST + SHORTEST_LINK / 2, to: width - host - 2 } : undefined;
  if (room) nodes[1]!.x = room.from + (room.to - room.from) * shareOf(delay!);
  const seen = new Map<string, number>();
  const links = network.ends.map(([from, to], link): LinkPlace => {
    const [near, far] = [nodes[from]!, nodes[to]!];
    const forward = columns[from]! < columns[to]!;
    const key = `${from} ${to}`;
    const lane = seen.get(key) ?? 0;
    seen.set(key, lane + 1);
    const side = (wide ? 21 : 6) * (forward ? -1 : 1);
    const y = (node: NodePlace): number =>
      wide ? TOP + LANE * (lane + 0.5) + side : node.y + node.height / 2 + side;
    const place: LinkPlace = {
      x1: forward ? near.x + near.width : near.x,
      y1: y(near),
      x2: forward ? far.x : far.x + far.width,
      y2: y(far),
      forward,
    };
    if (forward && network.bottlenecks.includes(link)) {
      place.queue = { x: place.x1 + 4, y: place.y1 - (wide ? 14 : 24), width: wide ? scale * widthOf(limits[network.bottlenecks.indexOf(link)] ?? 0) : QUEUE, height: 28 };
      place.x1 += place.queue.width + 8;
    }
    return place;
  });
  return { nodes, links, scale, ...(room ? { room } : {}) };
}

/** Returns the names of both directions of each bottleneck. */
export function cablesOf(network: NetworkShape): string[][] {
  return network.bottlenecks.map((link) => {
    const [from, to] = network.ends[link]!;
    const same = network.ends.flatMap(([near, far], place) => (near === from && far === to ? [place] : []));
    const back = network.ends.flatMap(([near, far], place) => (near === to && far === from ? [place] : []));
    const reverse = back[same.indexOf(link)];
    return [network.links[link]!, ...(reverse === undefined ? [] : [network.links[reverse]!])];
  });
}
