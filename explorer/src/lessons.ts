// The scenes of the eight lessons, each with its question.
import type { Scene } from "./scene";

export interface Lesson {
  title: string;
  question: string;
  scene: Partial<Scene>;
}

export const LESSONS: readonly Lesson[] = [
  {
    title: "Stop-and-wait",
    question: "How much of the 10 Mbit/s does stop-and-wait use? What changes if the delay falls to 5 ms?",
    scene: { worlds: ["stop-and-wait"], queue: "1000pkt" },
  },
  {
    title: "Sliding windows",
    question: "From which window on does the goodput stop growing? What happens to the RTT beyond it?",
    scene: { worlds: ["go-back-n"], window: 16, queue: "1000pkt" },
  },
  {
    title: "Recovery",
    question: "How many packets does each protocol retransmit after a loss?",
    scene: { worlds: ["go-back-n", "selective-repeat"], loss: "2%", queue: "1000pkt" },
  },
  {
    title: "Timers",
    question: "How long does the sender wait after a loss?",
    scene: { worlds: ["go-back-n"], window: 8, loss: "1%", jitter: "5ms", queue: "1000pkt" },
  },
  {
    title: "Slow start and Reno",
    question: "How many round trips do 100 kB take?",
    scene: { worlds: ["reno"], rate: "50Mbit/s", queue: "170pkt", size: "100kB" },
  },
  {
    title: "CUBIC",
    question: "How many seconds does Reno need until the path is full again? And CUBIC?",
    scene: { worlds: ["reno", "cubic"], rate: "100Mbit/s", delay: "50ms", queue: "100pkt", speed: 1 },
  },
  {
    title: "Queues and Vegas",
    question: "What is CUBIC's RTT on this path? And that of Vegas?",
    scene: { worlds: ["cubic", "vegas"], rate: "20Mbit/s", queue: "1000pkt", speed: 1 },
  },
  {
    title: "BBR",
    question: "Which controller has a high goodput and a low RTT, without loss and with 1 % loss?",
    scene: { worlds: ["reno", "cubic", "bbr"], rate: "20Mbit/s", queue: "1000pkt", loss: "1%", speed: 1 },
  },
];
