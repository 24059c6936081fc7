"""Steps of the vector environment per second and per second of CPU time, by the packets of a step."""

from __future__ import annotations

import os
import time

import numpy as np

from longfat.gym.networks import Networks

RATES = ("1Mbit/s", "10Mbit/s", "50Mbit/s")
INTERVAL_S = 0.01
COUNTS = (1, 16, 64, 256)
SECONDS = 3.0
SEGMENT_BITS = 8 * 1448


def main() -> None:
    """Prints a row for each rate and number of networks."""
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {INTERVAL_S * 1e3:g} ms of virtual time per step")
    print("rate      networks  steps/s  steps/CPU s  data packets per step")
    for rate in RATES:
        for count in COUNTS:
            path = {"rate": rate, "delay": "10ms", "queue": "100pkt"}
            networks = Networks(count, interval=INTERVAL_S, steps=1_000_000, path=path, seed=1)
            for network in range(count):
                networks.reset(network)
            done, total = 0, 0.0
            started, used = time.perf_counter(), time.process_time()
            while (elapsed := time.perf_counter() - started) < SECONDS:
                _, _, about = networks.step(np.zeros(count))
                done += count
                total += float(about["throughput"].sum())
            used = time.process_time() - used
            packets = total / done * INTERVAL_S / SEGMENT_BITS
            print(
                f"{rate:9} {count:8d}  {done / elapsed:7.0f}  {done / used:11.0f}  {packets:.1f}", flush=True
            )


if __name__ == "__main__":
    main()
