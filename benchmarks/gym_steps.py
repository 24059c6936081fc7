"""Steps per second of the vector environment: 10 ms intervals on a path of 50 Mbit/s."""

from __future__ import annotations

import os
import time

import numpy as np

from longfat.gym.networks import Networks

PATH = {"rate": "50Mbit/s", "delay": "10ms", "queue": "100pkt"}
SECONDS = 3.0


def main() -> None:
    """Prints a row for each number of networks."""
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {PATH['rate']}, interval 10 ms\nnetworks  steps/s  throughput Mbit/s")
    for count in (1, 16, 64, 256):
        networks = Networks(count, interval=0.01, steps=1_000_000, path=PATH, seed=1)
        for network in range(count):
            networks.reset(network)
        done, started, total = 0, time.perf_counter(), 0.0
        while (elapsed := time.perf_counter() - started) < SECONDS:
            _, _, about = networks.step(np.zeros(count))
            done += count
            total += float(about["throughput"].sum())
        print(f"{count:8d}  {done / elapsed:7.0f}  {total / done / 1e6:.1f}")


if __name__ == "__main__":
    main()
