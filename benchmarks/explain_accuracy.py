"""Compares the explanations of `longfat explain` with captures whose cause is known.

`python benchmarks/explain_accuracy.py [CAUSE...] [--captures 10] [--world sim|netns] [--side SIDE]` makes
captures over random rates, delays, buffers, controllers and seeds, each built for one cause, and prints how
often each cause is named, the errors of RTT and rate (those of policers with their sign), and with
`--replay` how often the controller is right and the replay reproduces the duration. A change of the path is
named if its time is right within two RTTs,
and the RTT after it within 3 %. `netns` needs root or user namespaces, and about 15 s per capture.
As root, its transfers have real-time priority; one whose emulator is late is repeated.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from captures import cases

import longfat as lf
from longfat.analysis.captures import explained

if TYPE_CHECKING:
    from captures.cases import Case

STEP_RTTS, STEP_ERROR = 2.0, 0.03
"""Error of the time of a change of the path in RTTs, and of the RTT after it."""


@dataclass
class Score:
    """What the explanations of a cause's captures gave."""

    named: Counter[str] = field(default_factory=Counter)
    rtt: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    policed: list[float] = field(default_factory=list)
    controllers: list[bool] = field(default_factory=list)
    probable: list[bool] = field(default_factory=list)
    reproduced: list[bool] = field(default_factory=list)
    false_steps: int = 0


def judge(score: Score, made: Case, file: Path, *, replay: bool) -> lf.Explanation:
    """Adds the explanation of a capture to a score."""
    found = lf.explain(file, replay=replay, trials=4)
    if found.one is None:
        score.named["nothing"] += 1
        return found
    figures = found.one.path
    if made.step is not None:
        score.named[explained.PATH_CHANGE if _has_step(made, found) else "no path change"] += 1
    else:
        score.named[found.limit or "nothing"] += 1
        score.false_steps += len(figures["changes"])
        if figures["base_rtt_s"]:
            score.rtt.append(abs(figures["base_rtt_s"] / made.rtt - 1))
    if figures["rate_bps"]:
        score.rate.append(abs(found.one.on_wire(figures["rate_bps"]) / made.rate / 1e6 - 1))
    policed = found.one.document["policer_bps"]
    if made.policed is not None and policed is not None:
        score.policed.append(found.one.on_wire(policed) / made.policed / 1e6 - 1)
    if found.replay is not None and found.replay.controllers:
        is_right = found.replay.controller == made.protocol["congestion"]
        score.controllers.append(is_right)
        if found.replay.is_controller_clear:
            score.probable.append(is_right)
        score.reproduced.append(found.replay.problem is None)
    return found


def _has_step(made: Case, found: lf.Explanation) -> bool:
    """Whether the one step of the RTT is found."""
    if found.one is None or made.step is None or len(found.one.path["changes"]) != 1:
        return False
    (step,), (time, rtt) = found.one.path["changes"], made.step
    return (
        abs(step["time_s"] - time) < STEP_RTTS * max(rtt, made.rtt)
        and abs(step["after_s"] / rtt - 1) < STEP_ERROR
    )


def main() -> None:
    """Makes the captures, explains them, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", help="causes; default: all that the world has")
    parser.add_argument("--captures", type=int, default=10, help="captures of each cause")
    parser.add_argument("--world", choices=("sim", "netns"), default="sim")
    parser.add_argument("--side", choices=("sender", "receiver"), default="sender")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", action="store_true", help="controllers and reproduced durations as well")
    parser.add_argument("--out", type=Path, help="output file (.json)")
    given = parser.parse_args()
    known = cases.CASES[given.world]
    if unknown := set(given.causes) - set(known):
        parser.error(f"unknown cause {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    scores = {cause: Score() for cause in given.causes or known}
    controllers = cases.LOSS_BASED if given.world == "netns" else cases.IN_SIMULATOR
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture.pcapng"
        for cause, score in scores.items():
            draw = random.Random(f"{given.seed} {cause}")
            for number in range(given.captures):
                made = known[cause](draw, controllers)
                made.capture(file, given.world, given.side, number + 1)
                named = score.named[cause]
                found = judge(score, made, file, replay=given.replay)
                if score.named[cause] == named:
                    print(f"{cause} {number}: {found.limits} {made}", file=sys.stderr)
    show(scores)
    if given.out is not None:
        given.out.write_text(json.dumps({cause: vars(score) for cause, score in scores.items()}, indent=1))


def show(scores: dict[str, Score]) -> None:
    """Prints the table of confusions, and the errors."""
    for cause, score in scores.items():
        total = sum(score.named.values())
        parts = [f"{cause}: {score.named[cause]} of {total} named"]
        parts += [f"{other} {count}" for other, count in score.named.most_common() if other != cause]
        for name, errors in (("RTT", score.rtt), ("rate", score.rate)):
            if errors:
                parts.append(
                    f"error of {name}: median {statistics.median(errors):.2%}, most {max(errors):.2%}"
                )
        if score.policed:
            middle, worst = statistics.median(score.policed), max(score.policed, key=abs)
            parts.append(f"error of the policer's rate: median {middle:+.1%}, largest {worst:+.1%}")
        if score.controllers:
            parts.append(f"controller {sum(score.controllers)} of {len(score.controllers)}")
            parts.append(f"if stated as probable {sum(score.probable)} of {len(score.probable)}")
            parts.append(f"reproduced {sum(score.reproduced)} of {len(score.reproduced)}")
        if score.false_steps:
            parts.append(f"{score.false_steps} false changes of the path")
        print("; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
