// Lengths of the path view that stand for settings, and the handles that change them: the right edge of a queue's box is its limit,
// and the receiver is as far away as the link's delay.
import type { Layout } from "./layout";
import { isPackets, quantity } from "./quantities";
import type { Scene } from "./scene";

/** Width of the box of a queue with 1 packet, per tenfold limit, and at most, in pixels. */
const [NARROW, TENFOLD] = [24, 22];
export const WIDEST = 101;
const MOST_PACKETS = 3000;
/** Width of a queue without a limit in packets. */
export const QUEUE_WIDTH = 56;
/** Delays in s with the shortest and the longest link, and the share of the room that the shortest one has. */
const [SHORT_S, LONG_S, LEAST] = [1e-4, 1, 0.4];
/** Pixels around a handle that belong to it. */
const NEAR = 7;

/** Returns the width of a queue's box. */
export const widthOf = (limit: number): number => (limit > 0 ? Math.min(WIDEST, NARROW + TENFOLD * Math.log10(limit)) : QUEUE_WIDTH);

/** Returns the limit in packets of a box with this width, with 2 digits. */
export function limitOf(width: number): number {
  const limit = 10 ** ((Math.min(WIDEST, Math.max(NARROW, width)) - NARROW) / TENFOLD);
  return Math.min(MOST_PACKETS, Math.max(1, Math.round(Number(limit.toPrecision(2)))));
}

/** Returns the share of the room for a link that a link with a delay in s takes, from 0.4 to 1; equal factors are equal lengths. */
export function shareOf(delay: number): number {
  const place = Math.log(Math.max(delay, SHORT_S) / SHORT_S) / Math.log(LONG_S / SHORT_S);
  return LEAST + (1 - LEAST) * Math.min(1, place);
}

/** Returns the delay in s of a link with a share of the room, with 2 digits. */
export function delayOf(share: number): number {
  const place = (Math.min(1, Math.max(LEAST, share)) - LEAST) / (1 - LEAST);
  return Number((SHORT_S * (LONG_S / SHORT_S) ** place).toPrecision(2));
}

export type HandleKey = "queue" | "queue2" | "delay";

export interface Handle {
  key: HandleKey;
  x: number;
  top: number;
  bottom: number;
  /** Returns the setting with the handle at another place. */
  text(x: number): string;
}

/** Returns the handles of a scene with one or two paths; other topologies have none. */
export function handlesOf(layout: Layout, scene: Scene): Handle[] {
  if (scene.topology !== "path" && scene.topology !== "two-paths") return [];
  const found: Handle[] = [];
  const queues = layout.links.flatMap(({ queue }) => (queue ? [queue] : []));
  for (const [place, box] of queues.entries()) {
    const key = place === 0 ? "queue" : "queue2";
    if (!isPackets(scene[key])) continue;
    found.push({ key, x: box.x + box.width, top: box.y, bottom: box.y + box.height, text: (x) => `${limitOf((x - box.x) / layout.scale)}pkt` });
  }
  const { room } = layout;
  const receiver = layout.nodes[1];
  if (scene.topology === "path" && room && receiver) {
    const text = (x: number): string => `${Number((delayOf((x - room.from) / (room.to - room.from)) * 1e3).toPrecision(2))}ms`;
    found.push({ key: "delay", x: receiver.x, top: receiver.y, bottom: receiver.y + receiver.height, text });
  }
  return found;
}

/** Returns the handle at a point. */
export function handleAt(handles: readonly Handle[], x: number, y: number): Handle | undefined {
  return handles.find((one) => Math.abs(one.x - x) <= NEAR && y >= one.top - NEAR && y <= one.bottom + NEAR);
}

/** Returns the delay of a scene's only path in s; undefined with other topologies. */
export const delayIn = (scene: Scene): number | undefined => (scene.topology === "path" ? quantity("delay", scene.delay) : undefined);
