// Closed forms, to compare with the measurement.
import { familyOf } from "./protocols";
import { flowsOf, pairsOf } from "./network-keys";
import { quantity } from "./quantities";
import type { Scene } from "./scene";

const MSS = 1448;
const TCP_PACKET = 1500;
const ARQ_PAYLOAD = 1024;
const ARQ_PACKET = 1084;
/** Constant of the Mathis formula for independent losses (Ott, Kemperman and Mathis). */
const RANDOM_LOSS = 1.31;

export interface Theory {
  bdpPackets: number;
  baseRtt: number;
  /** Goodput of each of N flows that share the rate equally, in bit/s. */
  share: number;
  /** Goodput of all flows together in bit/s. */
  total: number;
  /** A closed form of the protocol's goodput in bit/s, and its name. */
  form?: { name: string; goodput: number };
}

export const payloadOf = (world: string): number => (familyOf(world) === "arq" ? ARQ_PAYLOAD : MSS);

export function theoryOf(scene: Scene, world: string): Theory {
  const [rate, delay, loss] = [
    quantity("rate", scene.rate),
    quantity("delay", scene.delay),
    quantity("loss", scene.loss),
  ];
  const isArq = familyOf(world) === "arq";
  const [payload, packet] = isArq ? [ARQ_PAYLOAD, ARQ_PACKET] : [MSS, TCP_PACKET];
  const baseRtt = 2 * delayOf(scene, delay) + (hopsOf(scene) * (packet * 8)) / rate;
  const most = (rate * payload) / packet;
  const theory: Theory = { bdpPackets: (rate * baseRtt) / 8 / packet, baseRtt, ...sharesOf(scene, world, most) };
  // The forms are those of flows with one protocol.
  if (scene.rivals.length > 0) return theory;
  if (isArq) {
    const window = world === "stop-and-wait" ? 1 : scene.window;
    const goodput = Math.min(most, (window * payload * 8) / baseRtt);
    theory.form = { name: "window / RTT without loss", goodput };
  } else if (world === "reno" && loss > 0 && scene.burst === 1) {
    // Each loss costs a round trip of recovery, too. The native engine also counts the few timeouts.
    const window = 1 / (Math.sqrt(loss) / RANDOM_LOSS + loss);
    theory.form = { name: "Mathis with recovery", goodput: Math.min(((MSS * 8) / baseRtt) * window, theory.share) };
  }
  return theory;
}

const hopsOf = (scene: Scene): number => (scene.topology === "parking-lot" ? scene.hops : 1);

/** Returns the one-way delay of the first measured flow. */
function delayOf(scene: Scene, delay: number): number {
  if (scene.topology === "dumbbell") return delay + quantity("delay", scene.senders.split(",")[Math.max(0, scene.pair)]!);
  return delay * hopsOf(scene);
}

/** Returns the max-min share of each flow, and the sum of all. `most` is the goodput of one bottleneck. */
function sharesOf(scene: Scene, world: string, most: number): { share: number; total: number } {
  if (scene.topology === "parking-lot") {
    // At each bottleneck the long flows meet as many short ones.
    const share = most / (2 * scene.flows);
    return { share, total: share * scene.flows * pairsOf(scene) };
  }
  const second = scene.topology === "two-paths" && familyOf(world) === "mptcp" ? quantity("rate", scene.rate2) : 0;
  const total = most * (1 + second / quantity("rate", scene.rate));
  return { share: total / flowsOf(scene), total };
}
