// The protocols that a scene can name.

export interface Protocol {
  label: string;
  key: Record<string, unknown>;
}

const tcp = (label: string, congestion: string): Protocol => ({ label, key: { kind: "tcp", congestion } });

export const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  reno: tcp("TCP Reno", "reno"),
  cubic: tcp("TCP CUBIC", "cubic"),
  vegas: tcp("TCP Vegas", "vegas"),
  westwood: tcp("TCP Westwood+", "westwood"),
  bbr: tcp("TCP BBR", "bbr"),
  bbr1: tcp("TCP BBRv1", "bbr1"),
  "stop-and-wait": { label: "Stop-and-wait", key: { kind: "stop-and-wait" } },
  "go-back-n": { label: "Go-Back-N", key: { kind: "go-back-n" } },
  "selective-repeat": { label: "Selective repeat", key: { kind: "selective-repeat" } },
};

export const isTcp = (name: string): boolean => PROTOCOLS[name]?.key["kind"] === "tcp";

/** Returns the study key of a protocol; `window` applies to Go-Back-N and selective repeat. */
export function protocolKey(name: string, window: number): Record<string, unknown> {
  const key = PROTOCOLS[name]!.key;
  return isTcp(name) || name === "stop-and-wait" ? key : { ...key, window };
}
