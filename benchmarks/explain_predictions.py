"""Compares the predictions of `longfat explain` with what the same changes measure between Linux kernels.

`python benchmarks/explain_predictions.py [CAUSE...] [--captures 3]` captures transfers between kernels, lets
`explain` predict their durations with changes, makes each change of the emulated path or of the hosts, and
measures again. Random losses differ between trials, so that the mean of several is compared. Exits with code
1 if a measurement fails. Needs root or user namespaces, and about 2 minutes per capture. As root, transfers
between kernels have real-time priority, so that other programs delay them less.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from captures import cases

import longfat as lf
from longfat.analysis.captures import explained

CLOSE = 0.1
CAUSES = (
    explained.BANDWIDTH,
    explained.WINDOW,
    explained.LOSS,
    explained.LATENCY,
    explained.BUFFERBLOAT,
)
Settings = tuple[dict[str, Any], dict[str, Any]]
"""Protocol and path."""


def _without(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _scaled(text: str, unit: str, factor: float) -> str:
    return f"{float(text.removesuffix(unit)) * factor:.4f}{unit}"


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Settings]] = {
    "no limit by windows": lambda tcp, path: (_without(tcp, "receive_buffer", "send_buffer"), path),
    "BBRv1": lambda tcp, path: ({**tcp, "congestion": "bbr1"}, path),
    "CUBIC": lambda tcp, path: ({**tcp, "congestion": "cubic"}, path),
    "no random loss": lambda tcp, path: (tcp, _without(path, "loss")),
    "half the RTT": lambda tcp, path: (tcp, {**path, "delay": _scaled(path["delay"], "ms", 0.5)}),
    "twice the rate": lambda tcp, path: (tcp, {**path, "rate": _scaled(path["rate"], "Mbit/s", 2)}),
    "FQ-CoDel at the bottleneck": lambda tcp, path: (tcp, {**path, "queue": {"kind": "fq-codel"}}),
}
"""The changes that `explain` predicts, applied to the real settings."""
UNMEASURED = ("initial window of 30 packets",)
"""Changes without a setting in the world netns: kernels take an initial window from a route."""


@contextmanager
def _real_time() -> Iterator[None]:
    """Gives this thread and the processes that it starts real-time priority, as root only."""
    if os.geteuid():
        yield
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def measured(settings: Settings, size: int, trials: int, file: Path | None = None) -> float:
    """Returns the mean duration between kernels in s; of the last trial, packets are written to a file."""
    durations = []
    written = {} if file is None else {"pcapng": file, "snap": 96}
    for seed in range(trials):
        with _real_time():
            found = lf.trace(*settings, f"{size}B", world="netns", seed=seed + 1, samples=False, **written)
        durations.append(next(iter(found.metrics.values()))["completion_s"])
    return statistics.mean(durations)


def size_of(cause: str, made: cases.Case) -> int:
    """Returns the size of a file: what the path carries in some seconds, with losses a tenth of it."""
    if cause == explained.LATENCY:
        return int(made.workload["size"].removesuffix("kB")) * 1000
    seconds = 0.5 if cause == explained.LOSS else 4
    return int(made.rate * 1e6 / 8 * seconds)


def main() -> None:
    """Measures, predicts and measures again, and prints each change and the share of close predictions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", help="causes; default: all that have predictions")
    parser.add_argument("--captures", type=int, default=3, help="captures of each cause")
    parser.add_argument("--trials", type=int, default=5, help="measured trials with random loss")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    errors: dict[str, list[float]] = {}
    silent = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture.pcapng"
        for cause in given.causes or CAUSES:
            draw = random.Random(f"{given.seed} {cause}")
            for _ in range(given.captures):
                made = cases.CASES["netns"][cause](draw, cases.LOSS_BASED)
                assert made.path is not None
                size = size_of(cause, made)
                measured((made.protocol, made.path), size, 1, file)
                replay = lf.explain(file).replay
                if replay is None or replay.problem is not None:
                    silent += 1
                    print(f"{cause}: no predictions: {replay and replay.problem}", flush=True)
                    continue
                for change in replay.changes:
                    if change.name in UNMEASURED:
                        continue
                    settings = CHANGES[change.name](made.protocol, made.path)
                    trials = given.trials if "loss" in settings[1] else 1
                    try:
                        real = measured(settings, size, trials)
                    except (OSError, ValueError) as error:
                        failed += 1
                        print(f"{cause}, {change.name}: {error}", file=sys.stderr)
                        continue
                    error = change.duration.value / real - 1
                    errors.setdefault(change.name, []).append(error)
                    print(
                        f"{cause}, {change.name}: {change.duration.value:.3f} s, {real:.3f} s: {error:+.1%}",
                        flush=True,
                    )
    for name, found in errors.items():
        print(f"{name}: {sum(abs(one) < CLOSE for one in found)} of {len(found)} within {CLOSE:.0%}")
    everything = [abs(one) for found in errors.values() for one in found]
    if everything:
        close, middle = sum(one < CLOSE for one in everything), statistics.median(everything)
        print(f"all: {close} of {len(everything)}; median {middle:.1%}; {silent} captures without")
    if failed:
        sys.exit(f"{failed} measurements failed")


if __name__ == "__main__":
    main()
