"""`--quick`: reduces a study to half a minute on two cores.

Steps reduce a study until the estimate of its work (`longfat.study.work`) is within the budget: fewer trials,
fewer swept values (the ends and evenly spaced ones between), shorter trials, smaller files. Values that a
claim needs, settings of the command line, and three trials per cell stay.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longfat.study import sweep, units
from longfat.study.claims import MIN_TRIALS, Claim
from longfat.study.conditions import Condition
from longfat.study.labels import label
from longfat.study.specification import Study
from longfat.study.vocabulary import canonical
from longfat.study.work import work

SECONDS = 20.0
"""The budget: estimated seconds of all trials. A report takes a few seconds more."""
SPARE = 0.5
"""Extra seconds for simulated trials if real-time trials use up the budget."""
PACKETS_PER_SECOND = 1.5e6
"""Packets on links that two cores simulate per second in most studies."""
TRIAL = 5_000.0
"""The set-up time of a simulated trial, in packets."""
START_S = 0.7
"""The time to start a real-time trial, in s."""
SHORTEST_S = 1.0
"""The shortest duration of a trial, in s."""
SMALLEST_BYTES = 20_000
"""The smallest file, in bytes."""
FEWEST_REQUESTS = 5
_ALL = 10**9


@dataclass(frozen=True)
class Lanes:
    """Concurrent real-time trials of a world, and their total limit in packets per second."""

    jobs: int
    packets_per_second: float


LANES = {"relay": Lanes(16, 5_000.0), "netns": Lanes(4, 12_000.0)}
"""The limits of real-time worlds on two cores (`longfat.worlds.relay`, `longfat.worlds.netns`)."""


@dataclass(frozen=True)
class Step:
    """The largest number of trials and of swept values, and the remaining part of times and sizes.

    `sizes` is a further factor for file sizes: a shorter file changes a result less than fewer trials do.
    """

    trials: int
    values: int
    part: float = 1.0
    sizes: float = 1.0


TRIALS = (20, 10, 5)
"""Numbers of simulated trials per cell, in the order in which they are tried."""
STEPS = (
    *(Step(trials, _ALL) for trials in TRIALS[:-1]),
    Step(10, _ALL, sizes=1 / 2),
    Step(5, _ALL),
    *(Step(5, values) for values in (5, 3)),
    *(Step(5, 3, 1 / part) for part in (2, 4)),
    *(Step(MIN_TRIALS, 3, 1 / part) for part in (4, 8)),
    *(Step(MIN_TRIALS, 2, 1 / part) for part in (8, 16)),
    *(Step(MIN_TRIALS, 1, 1 / part) for part in (8, 16, 32, 64)),
)
"""From the mildest reduction to the strongest. A sweep with a trend keeps two values."""

_TIMES = ("duration", "warm_up", "start", "stagger", "start_jitter")


def cut(
    data: dict[str, Any],
    parse: Callable[[dict[str, Any]], Study],
    given: Collection[str],
    repeats: int | None,
) -> tuple[dict[str, Any], list[str]]:
    """Reduces a study's tables to the budget.

    Args:
        data: The tables of a valid study; not changed.
        parse: Makes a study of tables.
        given: Dotted keys set by the command line.
        repeats: The number of trials set by the command line.

    Returns:
        The tables, and a phrase for each reduction.
    """
    study = parse(data)

    def attempt(step: Step) -> tuple[_Cut, float]:
        made = _Cut(copy.deepcopy(data), study, step, frozenset(given), repeats)
        return made, cost(parse(made.data))

    for step in STEPS:
        made, seconds = attempt(step)
        if seconds <= SECONDS:
            break
    # If real-time trials caused the reduction, there is time for more simulated ones.
    for trials in (trials for trials in TRIALS if trials > step.trials):
        richer, more = attempt(replace(step, trials=trials))
        if more <= max(SECONDS, seconds + SPARE):
            return richer.data, richer.phrases
    return made.data, made.phrases


def cost(study: Study) -> float:
    """Returns the estimated seconds of all trials of a study on two cores."""
    packets, lanes, longest = 0.0, 0.0, 0.0
    for cell in sweep.cells(study):
        trials, one = study.trials_in(cell.world), work(cell.spec)
        at_once = LANES.get(cell.world)
        if at_once is None:
            packets += trials * (one.packets + TRIAL)
            continue
        # One simulation determines the load.
        packets += one.packets + TRIAL
        load = one.packets / one.seconds / at_once.packets_per_second if one.seconds > 0 else 0.0
        lanes += trials * (one.seconds + START_S) * min(1.0, max(1 / at_once.jobs, load))
        longest = max(longest, one.seconds + START_S)
    return packets / PACKETS_PER_SECOND + max(lanes, longest)


class _Cut:
    """A study's tables after one step, and phrases about the reductions."""

    def __init__(
        self, data: dict[str, Any], study: Study, step: Step, given: frozenset[str], repeats: int | None
    ) -> None:
        self.data, self.phrases = data, list[str]()
        self._study, self._step, self._given = study, step, given
        if repeats is None:
            self._cut_trials()
        for key in study.sweep:
            self._thin(key)
        self._shorten()
        step = self._step
        self._shrink("size", step.part * step.sizes, SMALLEST_BYTES, lambda least: f"{least}B")
        for key in ("requests", "rounds"):
            self._shrink(key, step.part, FEWEST_REQUESTS, int)

    def _cut_trials(self) -> None:
        study, trials = self._study, {}
        for world in study.worlds:
            most = MIN_TRIALS if world in LANES else self._step.trials
            trials[world] = min(study.trials_in(world), most)
        before = {world: study.trials_in(world) for world in study.worlds}
        self.data["repeats"] = max(trials.values())
        self.data["repeats_in"] = {w: n for w, n in trials.items() if n != self.data["repeats"]}
        for key in ("precision", "max_repeats"):
            self.data.pop(key, None)
        if study.precision is not None:
            self.phrases.append(f"no precision of {study.precision}")
        for world, n in trials.items():
            if n < before[world]:
                where = f" in {world}" if len(trials) > 1 else ""
                self.phrases.append(f"{n} of {before[world]} trials{where}")

    def _thin(self, key: str) -> None:
        every = sweep.values(self._study.sweep[key])
        columns = sweep.selectable({key: self._study.sweep[key]})
        kept = _kept(self._study.claims, columns, key, self._step.values)
        if key in self._given or len(kept) == len(every):
            return
        shown = [canonical(value) for value in kept]
        written = zip(every, sweep.listed(self._study.sweep[key]), strict=True)
        self.data["sweep"][key] = [point for value, point in written if canonical(value) in shown]
        named = ", ".join(label(value) for value in kept)
        self.phrases.append(f"{key} {named} ({len(kept)} of {len(every)} values)")

    def _shorten(self) -> None:
        own = self.data["workload"]
        whole = units.number(own.get("duration"))
        if whole is None or {"workload.duration", "workload.warm_up"} & self._given:
            return
        left = max(self._step.part, min(1.0, SHORTEST_S / whole))
        swept = {part for key in self._study.sweep for part in sweep.parts(key)}
        if left >= 1.0 or any(part == "workload.duration" or "down" in part.split(".") for part in swept):
            return
        workloads = [own, *(one.get("workload", {}) for one in self.data.get("traffic", []))]
        before = own["duration"]
        for workload in workloads:
            for key in _TIMES:
                seconds = units.number(workload.get(key))
                if seconds:
                    workload[key] = f"{max(round(seconds * left * 1000), 1)}ms"
        for section in self._study.network:
            self.data[section] = _earlier(self.data[section], left)
        self.phrases.append(f"{label(own['duration'])} instead of {before} a trial")

    def _shrink(self, key: str, part: float, least: int, written: Callable[[int], Any]) -> None:
        own = self.data["workload"]
        whole = units.number(own.get(key))
        if whole is None or {f"workload.{key}"} & self._given or f"workload.{key}" in self._study.sweep:
            return
        left = max(round(whole * part), min(round(whole), least))
        if left < round(whole):
            before, own[key] = own[key], written(left)
            self.phrases.append(f"{key} {own[key]} instead of {before}")


def _earlier(network: Any, left: float) -> Any:
    """Returns a network whose outages have the same place in a trial of which a part is left.

    >>> _earlier({"rate": "1Mbit/s", "down": ["4s..6s"]}, 0.25)
    {'rate': '1Mbit/s', 'down': ['1000000us..1500000us']}
    >>> _earlier({"uplink": [{"delay": "4s"}], "down": {"uplink/1/1": ["2s..4s"]}}, 0.5)
    {'uplink': [{'delay': '4s'}], 'down': {'uplink/1/1': ['1000000us..2000000us']}}
    """
    if isinstance(network, list):
        return [_earlier(one, left) for one in network]
    if not isinstance(network, dict):
        return network
    return {key: (_spans if key == "down" else _earlier)(value, left) for key, value in network.items()}


def _spans(down: Any, left: float) -> Any:
    """Returns outages of a link, or of several by name, earlier."""
    if isinstance(down, dict):
        return {name: _spans(one, left) for name, one in down.items()}
    ends = [[units.number(end.strip()) or 0.0 for end in span.split("..")] for span in down]
    return ["..".join(f"{round(end * left * 1e6)}us" for end in span) for span in ends]


def _kept(claims: Sequence[Claim], columns: Mapping[str, Sequence[Any]], key: str, most: int) -> list[Any]:
    """Returns the remaining values of a sweep: the ends, evenly spaced ones between, and those of claims.

    `columns` has the values of the swept key, and of each of several keys that move together.
    """
    every = columns[key]
    count = len(every)
    several = any(claim.along in columns or str(claim.among) in columns for claim in claims)
    most = max(most, 2) if several else most
    if count <= most:
        return list(every)
    last = count - 1
    kept = {last // 2} if most == 1 else {round(i * last / (most - 1)) for i in range(most)}
    for claim in claims:
        for name, values in columns.items():
            kept |= _needed(claim, name, values, kept)
    return [every[number] for number in sorted(kept)]


def _needed(claim: Claim, key: str, every: Sequence[Any], kept: set[int]) -> set[int]:
    """Returns further values without which a claim has no cell, or a trend fewer than two points."""
    condition = claim.conditions.get(key)
    if key in claim.against_where:
        # Both points stay.
        other = Condition.parse(claim.against_where[key])
        points = [
            [n for n, value in enumerate(every) if one.matches(value)] for one in (condition, other) if one
        ]
        return {found[0] for found in points if found and not kept.intersection(found)}
    matching = [n for n, value in enumerate(every) if condition is None or condition.matches(value)]
    needed: set[int] = set()
    if claim.along == key:
        if claim.after is not None:
            needed |= {n for n in matching if Condition.parse(claim.after).matches(every[n])}
        if matching and len((kept | needed).intersection(matching)) < 2:
            needed |= {matching[0], matching[-1]}
    elif matching and not kept.intersection(matching):
        needed.add(matching[len(matching) // 2])
    return needed
