// The protocols that a scene can name.
import type { Scene } from "./scene";

type Family = "tcp" | "mptcp" | "arq";

interface Protocol {
  label: string;
  family: Family;
  key: Record<string, unknown>;
  /** Whether it selects its feedback of ECN itself, whatever the setting. */
  ownEcn?: boolean;
}

const tcp = (label: string, congestion: string): Protocol => ({ label, family: "tcp", key: { kind: "tcp", congestion } });
const arq = (label: string, kind: string): Protocol => ({ label, family: "arq", key: { kind } });
const mptcp = (label: string, scheduler: string): Protocol => ({
  label: `MPTCP ${label}`,
  family: "mptcp",
  key: { kind: "mptcp", scheduler },
});

const FOUND: Record<string, Protocol> = {
  reno: tcp("TCP Reno", "reno"),
  cubic: tcp("TCP CUBIC", "cubic"),
  vegas: tcp("TCP Vegas", "vegas"),
  westwood: tcp("TCP Westwood+", "westwood"),
  bbr: tcp("TCP BBRv3", "bbr"),
  bbr1: tcp("TCP BBRv1", "bbr1"),
  dctcp: { ...tcp("DCTCP", "dctcp"), ownEcn: true },
  prague: { ...tcp("TCP Prague", "prague"), ownEcn: true },
  "stop-and-wait": arq("Stop-and-wait", "stop-and-wait"),
  "go-back-n": arq("Go-Back-N", "go-back-n"),
  "selective-repeat": arq("Selective repeat", "selective-repeat"),
  "mptcp-min-rtt": mptcp("minimum RTT", "min-rtt"),
  "mptcp-round-robin": mptcp("round-robin", "round-robin"),
  "mptcp-ecf": mptcp("ECF", "ecf"),
  "mptcp-blest": mptcp("BLEST", "blest"),
  "mptcp-redundant": mptcp("redundant", "redundant"),
  "mptcp-daps": mptcp("DAPS", "daps"),
  "mptcp-otias": mptcp("OTIAS", "otias"),
};

/** The protocols of the page by name, with the controllers of the study that `longfat explore` serves. */
export const PROTOCOLS: Readonly<Record<string, Protocol>> = FOUND;

/** A controller in Python, which only `longfat explore STUDY` can run. */
export interface Controller {
  name: string;
  label: string;
  key: Record<string, unknown>;
}

/** Adds the controllers of a study. Their names start with "own-". */
export function addControllers(controllers: readonly Controller[]): void {
  for (const { name, label, key } of controllers) FOUND[name] = { label, family: "tcp", key };
}

/** Returns why a protocol does not exist. The name in an address can be no text. */
export function unknownProtocol(name: unknown): string {
  if (String(name).startsWith("own-")) return `${name}: a controller in Python, which runs only with longfat explore STUDY`;
  return `${name}: unknown protocol (${Object.keys(PROTOCOLS).join(", ")})`;
}

/** Path policies of multipath TCP. */
export const POLICIES = ["all", "single", "fsfs", "delayed", "mmptcp", "freeway", "foresight", "in-kernel"];

/** Congestion controllers of multipath TCP: coupled ones first. */
export const COUPLINGS = ["lia", "olia", "balia", "wvegas", "reno", "cubic", "bbr"];

export const isProtocol = (name: string): boolean => Object.hasOwn(PROTOCOLS, name);

export const familyOf = (name: string): Family => PROTOCOLS[name]!.family;

export type Settings = Pick<Scene, "window" | "rto" | "minRto" | "ackDelay" | "ackEvery" | "initialWindow" | "delayedAck" | "ecn" | "policy" | "coupling">;

/** The keys of the settings in a study file, for each family of protocols. */
const KEYS: Readonly<Record<Family, Readonly<Record<string, keyof Settings>>>> = {
  arq: { window: "window", rto: "rto", min_rto: "minRto", acknowledge_delay: "ackDelay", acknowledge_every: "ackEvery" },
  tcp: { min_rto: "minRto", initial_window: "initialWindow", delayed_ack: "delayedAck", ecn: "ecn" },
  mptcp: {
    ...{ min_rto: "minRto", initial_window: "initialWindow", delayed_ack: "delayedAck", ecn: "ecn" },
    ...{ policy: "policy", congestion: "coupling" },
  },
};

/** Values of settings that a study file leaves out, in addition to empty ones. */
const DEFAULTS: Readonly<Partial<Record<keyof Settings, unknown>>> = { policy: "all", ecn: "off", ackEvery: 1 };

/** Returns whether a setting is one of protocols. */
export const isProtocolSetting = (setting: string): boolean => Object.values(KEYS).some((keys) => Object.values(keys).some((one) => one === setting));

/** Returns the settings of a protocol by their keys in a study file. */
function keysOf(name: string): Readonly<Record<string, keyof Settings>> {
  const { family, ownEcn } = PROTOCOLS[name]!;
  const entries = Object.entries(KEYS[family]);
  // Stop-and-wait has a window of one packet.
  const unused = ([key]: [string, keyof Settings]): boolean => (key === "window" && name === "stop-and-wait") || (key === "ecn" && ownEcn === true);
  return Object.fromEntries(entries.filter((entry) => !unused(entry)));
}

/** Returns the study key of a protocol with the settings of a scene. */
export function protocolKey(name: string, scene: Settings): Record<string, unknown> {
  const { key } = PROTOCOLS[name]!;
  const settings = Object.entries(keysOf(name)).flatMap(([written, setting]) => {
    const value = scene[setting];
    const isDefault = !value || value === DEFAULTS[setting];
    return isDefault ? [] : [[written, setting === "ecn" ? true : value]];
  });
  return { ...key, ...(Object.fromEntries(settings) as Record<string, unknown>) };
}

/** The key in which the protocols of a family differ, if running flows take it over. */
const LIVE_DIFFERENCE: Readonly<Partial<Record<Family, string>>> = { tcp: "congestion", mptcp: "scheduler" };

export const liveDifferenceOf = (name: string): string | undefined => LIVE_DIFFERENCE[familyOf(name)];

/** Returns whether running flows can change from one protocol to another. The feedback of ECN is fixed when a flow opens. */
export const canChange = (before: string, after: string): boolean => {
  const own = PROTOCOLS[before]!.ownEcn || PROTOCOLS[after]!.ownEcn;
  return familyOf(before) === familyOf(after) && liveDifferenceOf(after) !== undefined && (!own || before === after);
};

/** Returns the key of a setting in the study key of a protocol; nothing if the protocol does not use it. */
export function keyOf(setting: string, name: string): string | undefined {
  return Object.entries(keysOf(name)).find(([, other]) => other === setting)?.[0];
}

/** Returns the settings that a protocol of a study file has. */
export function settingsOf(name: string, entry: Readonly<Record<string, unknown>>): Partial<Settings> {
  return Object.fromEntries(Object.entries(keysOf(name)).flatMap(([key, setting]) => (key in entry ? [[setting, key === "ecn" ? (entry[key] ? "on" : "off") : entry[key]]] : [])));
}
