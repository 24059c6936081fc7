// Kinds of lost packets, which have different causes and cures.
import type { TraceEvent } from "./engine";

export type LossKind = "random" | "queue" | "ack" | "other";

/** Returns the kind of a dropped packet: a lost ACK, whatever dropped it, a random loss, or a drop of the queue. */
export function lossKind({ length, frame, reason }: TraceEvent): LossKind {
  if (frame === "ack" && !length) return "ack";
  return reason === "loss" ? "random" : reason === "queue" ? "queue" : "other";
}
