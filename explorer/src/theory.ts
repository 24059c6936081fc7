// Closed forms, to compare with the measurement.
import { isTcp } from "./protocols";
import { quantity, type Scene } from "./scene";

const MSS = 1448;
const TCP_PACKET = 1500;
const ARQ_PAYLOAD = 1024;
const ARQ_PACKET = 1084;

export interface Theory {
  bdpPackets: number;
  baseRtt: number;
  /** Goodput of each of N flows that share the rate equally, in bit/s. */
  share: number;
  /** A closed form of the protocol's goodput in bit/s, and its name. */
  form?: { name: string; goodput: number };
}

export const payloadOf = (world: string): number => (isTcp(world) ? MSS : ARQ_PAYLOAD);

export function theoryOf(scene: Scene, world: string): Theory {
  const [rate, delay, loss] = [
    quantity("rate", scene.rate),
    quantity("delay", scene.delay),
    quantity("loss", scene.loss),
  ];
  const [payload, packet] = isTcp(world) ? [MSS, TCP_PACKET] : [ARQ_PAYLOAD, ARQ_PACKET];
  const baseRtt = 2 * delay + (packet * 8) / rate;
  const most = (rate * payload) / packet;
  const theory: Theory = { bdpPackets: (rate * baseRtt) / 8 / packet, baseRtt, share: most / scene.flows };
  if (!isTcp(world)) {
    const window = world === "stop-and-wait" ? 1 : scene.window;
    const goodput = Math.min(most, (window * payload * 8) / baseRtt);
    theory.form = { name: "window / RTT, without loss", goodput };
  } else if (world === "reno" && loss > 0) {
    const mathis = ((MSS * 8) / baseRtt) * Math.sqrt(1.5 / loss);
    theory.form = { name: "Mathis", goodput: Math.min(mathis, theory.share) };
  }
  return theory;
}
