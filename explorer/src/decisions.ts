// Sentences about the decisions of senders, from the state that the engine records at each change.
import type { Decision } from "./engine";

/** How the sender detects losses, with its source. */
const DETECTION: Readonly<Record<string, (count: number) => string>> = {
  rack: (count) => `${counted(count, "later packet is", "later packets are")} acknowledged selectively (RACK, RFC 8985, section 6.2)`,
  sack: (count) => `${counted(count, "later packet is", "later packets are")} acknowledged selectively (RFC 6675, section 5)`,
  newreno: (count) => `${counted(count, "duplicate ACK", "duplicate ACKs")} (RFC 5681, section 3.2)`,
};

const PHASES: Readonly<Record<string, string>> = {
  "slow-start": "Slow start: cwnd grows by one packet per acknowledged packet (RFC 5681, section 3.1)",
  "conservative-slow-start": "The RTT grows: conservative slow start (HyStart++, RFC 9406)",
  "congestion-avoidance": "Congestion avoidance",
  startup: "BBR Startup: the pacing rate doubles each round trip",
  drain: "BBR Drain: the queue of Startup empties",
  "probe-bw-down": "BBR ProbeBW_DOWN: pacing at 90 % of the bandwidth drains the queue",
  "probe-bw-cruise": "BBR ProbeBW_CRUISE: pacing at the estimated bandwidth",
  "probe-bw-refill": "BBR ProbeBW_REFILL: the pipe fills for one round trip",
  "probe-bw-up": "BBR ProbeBW_UP: pacing at 125 % probes for more bandwidth",
  "probe-bw": "BBRv1 ProbeBW: a cycle of pacing gains around the bandwidth",
  "probe-rtt": "BBR ProbeRTT: a small window measures the minimum RTT",
};

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** Responses of scalable controllers to marks, each with its source; all others respond as in RFC 3168. */
const RESPONSES: Readonly<Record<string, string>> = {
  dctcp: "the window falls by half of the average share of marked bytes (DCTCP, RFC 8257, section 3.3)",
  prague: "the window falls by half of the average share of marked packets (TCP Prague, draft-briscoe-iccrg-prague-congestion-control)",
};

/** Returns the source of the marks of a protocol's packets. */
export const sourceOfMarks = (protocol: string): string => (protocol === "prague" ? "L4S, RFC 9331" : "ECN, RFC 3168");

/** Returns the windows in packets. */
function windows({ cwnd_bytes, ssthresh_bytes, detection }: Decision, payload: number): string {
  const packets = (bytes: number): string => (bytes / payload).toFixed(0);
  const threshold = ssthresh_bytes === undefined ? "" : `, ssthresh = ${packets(ssthresh_bytes)}`;
  return `${detection === undefined ? "window" : "cwnd"} = ${packets(cwnd_bytes)}${threshold}`;
}

/** Returns the sentences about the change from one state of a sender to the next; `before` is missing at the start. */
export function decisionSentences(before: Decision | undefined, after: Decision, payload: number, protocol: string): string[] {
  const found: string[] = [];
  const size = windows(after, payload);
  const was = before ?? { ...after, state: "open", timeouts: 0, probes: 0, undone: 0, late: 0, phase: "" };
  if (after.timeouts > was.timeouts) {
    const rto = after.rto_s === undefined ? "" : `; the next RTO is ${(after.rto_s * 1e3).toFixed(0)} ms`;
    // ARQ protocols have their own timer, and no loss detection of TCP.
    const source = after.detection === undefined ? "" : " (RFC 6298, section 5)";
    found.push(`The retransmission timer expires: ${size}${rto}${source}.`);
  }
  if (after.probes > was.probes) found.push("No ACK arrives: a tail loss probe leaves (RFC 8985, section 7.3).");
  if (after.undone > was.undone) {
    const undo = `the sender undoes the reduction, ${size} (Eifel, RFC 4015; DSACK, RFC 3708; F-RTO, RFC 5682)`;
    found.push(`A retransmission was unnecessary: ${after.detection === undefined ? "the original arrived" : undo}.`);
  }
  if (after.state !== was.state) {
    const cause = after.late > was.late ? "The reordering timer expires (RFC 8985, section 6.3)" : DETECTION[after.detection ?? ""]?.(after.sacked);
    if (after.state === "recovery") found.push(`${cause ?? "Loss"}: fast retransmit, ${size}.`);
    else if (after.state === "cwr") {
      const response = RESPONSES[protocol];
      const text = response ? `congestion marks: ${response}, ${size}` : `a congestion mark: ${size} (ECN, RFC 3168, section 6.1.2)`;
      found.push(`The receiver reports ${text}.`);
    }
    else if (after.state === "disorder") found.push("ACKs show reordering or loss: the sender waits for further ACKs.");
    else if (after.state === "open" && was.state !== "disorder") found.push(`Recovery is complete: ${size}.`);
  }
  if (after.phase !== was.phase && PHASES[after.phase] && before) found.push(`${PHASES[after.phase]}, ${size}.`);
  return found;
}

/** Returns the rule behind a retransmission, from the sender's state at that time. */
export function retransmissionRule(state: Decision | undefined, time: number): string {
  if (!state) return "the timer of the handshake expires (RFC 6298, section 5)";
  if (state.state === "loss") return "recovery after a timeout (RFC 6298, section 5.4; RFC 5681, section 3.1)";
  if (state.state === "recovery") {
    if (state.detection === "rack") return "RACK declares it lost (RFC 8985, section 6.2)";
    return state.detection === "sack" ? "fast recovery with SACK (RFC 6675, section 5)" : "fast recovery (RFC 6582, section 3.2)";
  }
  if (state.probes > 0 && state.time === time) return "a tail loss probe (RFC 8985, section 7.3)";
  // ARQ protocols with a fixed window retransmit by timer only.
  return state.detection === undefined ? "the timer of this packet or of an earlier one expired" : "the sender declares it lost";
}
