// Scenes of the page with two protocols on one bottleneck, each with its question.
import type { Lesson } from "./lessons";

export const NAMED: Readonly<Record<string, Lesson>> = {
  "prague-cubic": {
    title: "Prague beside CUBIC",
    question: "How long do the packets of each flow wait in DualPI2? What changes in both if the discipline is CoDel or drop-tail?",
    scene: {
      ...{ worlds: ["prague"], rivals: [{ protocol: "cubic", pair: 1 }], pair: 0, ecn: "on", topology: "dumbbell", senders: "1ms, 1ms" },
      ...{ rate: "20Mbit/s", delay: "4ms", discipline: "dualpi2", queue: "1000pkt", speed: 0.5 },
    },
  },
  "vegas-reno": {
    title: "Vegas beside Reno",
    question: "Which share of the link does Vegas keep with a queue of 100 packets? And with 20?",
    scene: {
      ...{ worlds: ["vegas"], rivals: [{ protocol: "reno", pair: 1 }], pair: 0, topology: "dumbbell", senders: "2ms, 2ms" },
      ...{ delay: "18ms", queue: "100pkt", speed: 1 },
    },
  },
  "bbr-cubic": {
    title: "BBR beside CUBIC",
    question: "Which protocol has the larger share with a queue of 30 packets? And with 500?",
    scene: {
      ...{ worlds: ["bbr"], rivals: [{ protocol: "cubic", pair: 1 }], pair: 0, topology: "dumbbell", senders: "2ms, 2ms" },
      ...{ delay: "18ms", queue: "30pkt", speed: 1 },
    },
  },
  "selective-repeat-go-back-n": {
    title: "Selective repeat beside Go-Back-N",
    question: "Which protocol loses more of the link to retransmissions?",
    scene: {
      ...{ worlds: ["selective-repeat"], rivals: [{ protocol: "go-back-n", pair: 1 }], pair: 0, topology: "dumbbell", senders: "2ms, 2ms" },
      ...{ delay: "18ms", loss: "1%", queue: "100pkt", window: 32 },
    },
  },
};
