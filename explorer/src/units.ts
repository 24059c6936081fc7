// The units of quantities by dimension, with their sizes in s, bit/s, B, 1, 1/s or packets.
// Generated from the vocabulary (`make reference`); not for editing.

export type Dimension = keyof typeof UNITS;

/** A unit; messages do not list an alias. */
export interface Unit {
  readonly unit: string;
  readonly scale: number;
  readonly alias: boolean;
}

export const UNITS = {
  duration: [
    { unit: "ns", scale: 1e-09, alias: false },
    { unit: "us", scale: 1e-06, alias: false },
    { unit: "ms", scale: 0.001, alias: false },
    { unit: "s", scale: 1.0, alias: false },
    { unit: "min", scale: 60.0, alias: false },
    { unit: "µs", scale: 1e-06, alias: true },
    { unit: "μs", scale: 1e-06, alias: true },
  ],
  frequency: [
    { unit: "/min", scale: 0.016666666666666666, alias: false },
    { unit: "/s", scale: 1.0, alias: false },
  ],
  packets: [
    { unit: "pkt", scale: 1.0, alias: false },
    { unit: "pkts", scale: 1.0, alias: true },
    { unit: "packet", scale: 1.0, alias: true },
    { unit: "packets", scale: 1.0, alias: true },
  ],
  proportion: [
    { unit: "%", scale: 0.01, alias: false },
  ],
  rate: [
    { unit: "bit/s", scale: 1.0, alias: false },
    { unit: "kbit/s", scale: 1000.0, alias: false },
    { unit: "Mbit/s", scale: 1000000.0, alias: false },
    { unit: "Gbit/s", scale: 1000000000.0, alias: false },
    { unit: "bps", scale: 1.0, alias: true },
    { unit: "kbps", scale: 1000.0, alias: true },
    { unit: "Mbps", scale: 1000000.0, alias: true },
    { unit: "Gbps", scale: 1000000000.0, alias: true },
  ],
  size: [
    { unit: "B", scale: 1.0, alias: false },
    { unit: "kB", scale: 1000.0, alias: false },
    { unit: "KiB", scale: 1024.0, alias: false },
    { unit: "MB", scale: 1000000.0, alias: false },
    { unit: "MiB", scale: 1048576.0, alias: false },
    { unit: "GB", scale: 1000000000.0, alias: false },
    { unit: "GiB", scale: 1073741824.0, alias: false },
    { unit: "KB", scale: 1000.0, alias: true },
  ],
} as const satisfies Record<string, readonly Unit[]>;
