"""Compares the predictions of `longfat explain` with what the same changes measure between Linux kernels.

`python benchmarks/explain_predictions.py [CAUSE...] [--captures 3]` captures transfers between kernels, lets
`explain` predict their durations with changes, makes each change of the emulated path or of the hosts, and
measures again. A prediction is compared with a transfer that loses the same packets as the captured one (the
same seed), and its interval also with transfers that lose others. Exits with code 1 if a measurement fails.
Needs root or user namespaces, and about 2 minutes per capture. As root, transfers between kernels have
real-time priority, so that other programs delay them less. An emulator that is late all the same sends bursts
that overflow short queues: such a measurement is repeated, and the least late one counts.

`--keep FOLDER` keeps captures and measured durations. The next run with this folder predicts again and
measures only what is missing, so that two versions of the predictions have the same measurements.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captures import cases, punctual

import longfat as lf
from longfat.analysis.captures import explained
from longfat.analysis.captures.replayed import Change

CLOSE = 0.1
CAUSES = (
    explained.BANDWIDTH,
    explained.WINDOW,
    explained.LOSS,
    explained.LATENCY,
    explained.BUFFERBLOAT,
    explained.BURSTS,
    cases.REQUESTS,
)
Settings = tuple[dict[str, Any], dict[str, Any]]
"""Protocol and path."""
KINDS = {**cases.CASES["netns"], cases.REQUESTS: cases.requests}


@dataclass(frozen=True)
class Transfer:
    """What is sent, and the end whose packets are captured: that of the data."""

    workload: dict[str, Any]
    side: str


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


def _trial(settings: Settings, sent: Transfer, seed: int, file: Path, attempts: int = 1) -> float:
    """Writes the packets of a transfer between kernels, and returns the duration of its data in s."""
    protocol, path = settings
    punctual.capture(
        file, attempts, protocol=protocol, path=path, workload=sent.workload, seed=seed, side=sent.side
    )
    one = lf.explain(file, replay=False).one
    if one is None:
        raise ValueError(f"{file}: no data")
    return float(one.document["duration_s"])


def measured(settings: Settings, sent: Transfer, seeds: Sequence[int]) -> list[float]:
    """Returns the duration between kernels in s for each seed; several trials run at once."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{seed}.pcapng" for seed in seeds]
        if len(seeds) == 1:
            return [repeated(settings, sent, seeds[0], files[0])]
        with ThreadPoolExecutor(len(seeds)) as pool:
            return list(pool.map(lambda one: _trial(settings, sent, *one), zip(seeds, files, strict=True)))


def repeated(settings: Settings, sent: Transfer, seed: int, file: Path) -> float:
    """Writes the packets of a transfer on time, and returns its duration in s.

    Transfers with random losses leave queues empty, so that they have one attempt.
    """
    return _trial(settings, sent, seed, file, 1 if "loss" in settings[1] else punctual.ATTEMPTS)


def transfer_of(cause: str, made: cases.Case) -> Transfer:
    """Returns what is sent: a file that the path carries in some seconds, with losses a tenth of it."""
    if made.workload["kind"] in ("file", "request-response"):
        return Transfer(made.workload, made.side or "sender")
    seconds = 0.5 if cause == explained.LOSS else 4
    return Transfer({"kind": "file", "size": f"{int(made.rate * 1e6 / 8 * seconds)}B"}, "sender")


@dataclass
class Comparison:
    """Predictions next to measurements. `folder` has captures and durations in s by the change's name."""

    folder: Path
    seed: int
    trials: int
    errors: dict[str, list[float]] = field(default_factory=dict)
    silent: int = 0
    failed: int = 0
    covered: int = 0
    transfers: int = 0

    def compare(self, cause: str, number: int, made: cases.Case) -> None:
        """Captures a transfer, predicts changes, measures them, and prints each."""
        assert made.path is not None
        sent = transfer_of(cause, made)
        file = self.folder / f"{self.seed}-{cause.replace(' ', '-')}-{number}.pcapng"
        # With the same seed, captures of all paths would have about the same losses.
        seeds = random.Random(f"{self.seed} {cause} {number}").sample(range(1, 10**6), self.trials)
        if not file.exists():
            repeated((made.protocol, made.path), sent, seeds[0], file)
        replay = lf.explain(file).replay
        if replay is None or replay.problem is not None:
            self.silent += 1
            print(f"{cause}: no predictions: {replay and replay.problem}", flush=True)
            return
        durations = file.with_suffix(".json")
        known = json.loads(durations.read_text()) if durations.exists() else {}
        for change in replay.changes:
            if change.name in UNMEASURED:
                continue
            settings = CHANGES[change.name](made.protocol, made.path)
            trials = self.trials if "loss" in settings[1] else 1
            try:
                if change.name not in known:
                    known[change.name] = measured(settings, sent, seeds[:trials])
                    durations.write_text(json.dumps(known))
            except (OSError, ValueError) as error:
                self.failed += 1
                print(f"{cause}, {change.name}: {error}", file=sys.stderr)
                continue
            self._add(cause, change, known[change.name])

    def _add(self, cause: str, change: Change, real: Sequence[float]) -> None:
        found = change.duration
        error = found.value / real[0] - 1
        self.errors.setdefault(change.name, []).append(error)
        self.covered += sum(found.low <= one <= found.high for one in real)
        self.transfers += len(real)
        print(f"{cause}, {change.name}: {found.value:.3f} s, {real[0]:.3f} s: {error:+.1%}", flush=True)

    def summary(self) -> None:
        """Prints the share of close predictions, and of transfers in the predicted intervals."""
        for name, found in self.errors.items():
            close = sum(abs(one) < CLOSE for one in found)
            print(f"{name}: {close} of {len(found)} within {CLOSE:.0%}; largest {max(found, key=abs):+.1%}")
        everything = [abs(one) for found in self.errors.values() for one in found]
        if everything:
            close, middle = sum(one < CLOSE for one in everything), statistics.median(everything)
            print(f"all: {close} of {len(everything)}; median {middle:.1%}; {self.silent} captures without")
            print(f"{self.covered} of {self.transfers} transfers are in the interval of the prediction")


def main() -> None:
    """Measures, predicts and measures again, and prints each change and the share of close predictions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", help="causes; default: all that have predictions")
    parser.add_argument("--captures", type=int, default=3, help="captures of each cause")
    parser.add_argument("--trials", type=int, default=5, help="measured trials with random loss")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder of captures and measured durations")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(folder, given.seed, given.trials)
        for cause in given.causes or CAUSES:
            draw = random.Random(f"{given.seed} {cause}")
            for number in range(given.captures):
                comparison.compare(cause, number, KINDS[cause](draw, cases.LOSS_BASED))
    comparison.summary()
    if comparison.failed:
        sys.exit(f"{comparison.failed} measurements failed")


if __name__ == "__main__":
    main()
