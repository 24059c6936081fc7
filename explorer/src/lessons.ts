// The scenes of the lessons, each with its question.
import type { Scene } from "./scene";
import type { Plan } from "./sketch";

export interface Lesson {
  /** Name of the page in docs/learn; scenes without a lesson have none. */
  page?: string;
  title: string;
  question: string;
  scene: Partial<Scene>;
  /** What the reader draws before the scene plays; lessons only. */
  plan?: Plan;
}

const goodput = (span: number, high: number): Plan => ({ chart: 3, column: "goodput", what: "the goodput", unit: "Mbit/s", span, high });
const rtt = (span: number, high: number): Plan => ({ chart: 1, column: "rtt", what: "the RTT", unit: "ms", span, high });
const cwnd = (span: number, high: number): Plan => ({ chart: 0, column: "cwnd", what: "the congestion window", unit: "packets", span, high });

export const LESSONS: readonly Lesson[] = [
  {
    page: "1-stop-and-wait",
    title: "Stop-and-wait",
    question: "How much of the 10 Mbit/s does stop-and-wait use? What changes if the delay falls to 5 ms?",
    scene: { worlds: ["stop-and-wait"], queue: "1000pkt" },
    plan: goodput(1, 10),
  },
  {
    page: "2-sliding-windows",
    title: "Sliding windows",
    question: "From which window on does the goodput stop growing? What happens to the RTT beyond it?",
    scene: { worlds: ["go-back-n"], window: 16, queue: "1000pkt" },
    plan: goodput(1, 10),
  },
  {
    page: "3-recovery",
    title: "Recovery",
    question: "How many packets does each protocol retransmit after a loss?",
    scene: { worlds: ["go-back-n", "selective-repeat"], loss: "2%", queue: "1000pkt" },
    plan: goodput(3, 10),
  },
  {
    page: "4-timers",
    title: "Timers",
    question: "How long does the sender wait after a loss?",
    scene: { worlds: ["go-back-n"], window: 8, loss: "1%", jitter: "5ms", queue: "1000pkt" },
    plan: goodput(3, 10),
  },
  {
    page: "5-reno",
    title: "Slow start and Reno",
    question: "How many round trips do 100 kB take?",
    scene: { worlds: ["reno"], rate: "50Mbit/s", queue: "170pkt", size: "100kB" },
    plan: cwnd(0.2, 100),
  },
  {
    page: "6-cubic",
    title: "CUBIC",
    question: "How many seconds does Reno need until the path is full again? And CUBIC?",
    scene: { worlds: ["reno", "cubic"], rate: "100Mbit/s", delay: "50ms", queue: "100pkt", speed: 1 },
    plan: cwnd(20, 1500),
  },
  {
    page: "7-vegas",
    title: "Queues and Vegas",
    question: "What is CUBIC's RTT on this path? And that of Vegas?",
    scene: { worlds: ["cubic", "vegas"], rate: "20Mbit/s", queue: "1000pkt", speed: 1 },
    plan: rtt(10, 700),
  },
  {
    page: "8-bbr",
    title: "BBR",
    question: "Which controller has a high goodput and a low RTT, without loss and with 1 % loss? How do both versions of BBR differ?",
    scene: { worlds: ["cubic", "bbr1", "bbr"], rate: "20Mbit/s", queue: "1000pkt", loss: "1%", speed: 1 },
    plan: cwnd(10, 200),
  },
  {
    page: "9-queue-management",
    title: "Queue management",
    question: "What is the RTT with a queue of 1000 packets? And after you change its discipline to CoDel?",
    scene: { worlds: ["cubic"], rate: "20Mbit/s", queue: "1000pkt", speed: 1 },
    plan: rtt(10, 700),
  },
  {
    page: "10-mptcp",
    title: "Multipath TCP",
    question: "When does the second path help?",
    scene: { worlds: ["reno", "mptcp-min-rtt"], topology: "two-paths", rate: "10Mbit/s", rate2: "5Mbit/s", size: "500kB", queue: "100pkt", queue2: "100pkt" },
    plan: goodput(0.8, 15),
  },
  {
    page: "11-network-time",
    title: "Measuring network time",
    question: "Two packets leave together. How far apart do they arrive?",
    scene: { worlds: ["go-back-n"], window: 2, rate: "1Mbit/s", delay: "10ms", size: "100kB", speed: 0.02 },
    plan: rtt(0.2, 60),
  },
  {
    page: "12-fairness",
    title: "Fairness",
    question: "Two flows with RTTs of 30 ms and 100 ms share a link. What share does the longer one get?",
    scene: { worlds: ["reno", "cubic"], topology: "dumbbell", rate: "20Mbit/s", delay: "10ms", queue: "100pkt", speed: 1 },
    plan: cwnd(20, 200),
  },
];
