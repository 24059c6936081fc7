"""Probes to the routers of a path, until their links are known precisely or the budget is spent.

Each round probes every router once with every size, in random order: changes of the path during a round
affect all of them alike. After the first rounds, only the routers on both sides of an imprecise link are
probed. A router that answers rarely (many limit their answers) is probed less often.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from longfat.analysis.inference import losses
from longfat.analysis.inference.last_link import ENOUGH, LastLink, separated
from longfat.analysis.inference.links import Path, converged, infer
from longfat.analysis.inference.samples import REACHED, TOO_BIG, Samples

LARGEST = 1500
LARGEST_SIZE = 65_000
"""Largest probe in bytes."""
MOST_SIZES = 40
SMALLEST_SIZE = {4: 36, 6: 56}
"""Smallest probe in bytes by the version of IP: headers, and eight bytes that identify it."""
LARGEST_QUOTE = 576
"""Largest answer with the packet that it quotes, in bytes (RFC 1812, section 4.3.2.3)."""
FIRST_ROUNDS = 8
SCOUTS = 2
SILENT = 6
"""Consecutive routers without an answer, after which the search stops."""
JUDGED = 8
RARELY = 0.7
"""A router that answers less than this share of `JUDGED` probes is probed less often."""
SLOWEST_S = 1.1
"""Longest pause between two probes of a router: Linux answers at least once a second."""
LOSS, LOSS_SHARE = 0.007, 1 / 3
"""Half-width of the interval of the loss to the end at which it is known: absolute, or relative."""
SMALL_QUOTED = 604
"""Answers to packets of at least this size quote the same number of bytes (RFC 1812, section 4.3.2.3)."""
LEAST_SPAN = 256
"""Smallest difference in bytes of the two sizes that separate the last link's rates."""
BURST, LAST_ROUNDS = 3, 8
"""Pairs of UDP probes that Linux answers at once, and the most in total."""
LAST_SHARE, LAST_S = 0.2, 12.0
"""Part of the time limit for these probes, and the time in s that is always enough for them."""

Show = Callable[["Progress"], None]


class Prober(Protocol):
    """Sends probes: `longfat._native.HopProber`, or a model of a network in tests."""

    def run(self, probes: Sequence[tuple[int, int]], show: Callable[[int], bool | None], /) -> str:
        """Sends probes of (time to live, size) and returns their outcomes as a JSON list."""
        ...


@dataclass(frozen=True)
class Budget:
    """When to stop: precision (half-widths of intervals), probes, time in s."""

    rate: float = 0.05
    latency: float = 0.02
    least_latency: float = 25e-6
    rounds: int = 64
    probes: int = 20_000
    seconds: float = 300.0
    max_hops: int = 30


@dataclass
class Progress:
    """State of a measurement."""

    samples: Samples = field(default_factory=Samples)
    path: Path = field(default_factory=lambda: Path((), ()))
    rounds: int = 0
    is_converged: bool = False
    ended_by: str = ""
    limited: set[int] = field(default_factory=set)
    """Times to live of routers that answered rarely and were probed less often."""
    last: LastLink | None = None
    """The last link by answers to UDP; None without such probes."""


def default_sizes(least: int, largest: int) -> tuple[int, ...]:
    """Returns sizes near both ends, which determine a slope best, and some between.

    >>> default_sizes(36, 1500)
    (36, 68, 100, 132, 580, 612, 644, 676, 1032, 1372, 1404, 1436, 1468, 1500)
    """
    if largest < LARGEST_QUOTE + 4 + 2 * 128:
        step = max(1, (largest - least) // 11)
        return tuple(sorted({*range(least, largest, step), largest}))
    small = range(least, least + 128, 32)
    low = range(LARGEST_QUOTE + 4, LARGEST_QUOTE + 4 + 128, 32)
    high = range(largest - 128, largest + 1, 32)
    middle = (low[-1] + high[0]) // 2 // 8 * 8 + 8
    return tuple(sorted({*small, *low, middle, *high}))


class PathMeasurement:
    """One measurement. Ctrl-C may interrupt `run`; the samples stay."""

    def __init__(
        self,
        prober: Prober,
        budget: Budget,
        sizes: Sequence[int] | None = None,
        *,
        version: int = 4,
        seed: int = 1,
        earlier: Iterable[dict[str, Any]] = (),
        keep: Callable[[list[dict[str, Any]]], None] | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._prober = prober
        self._budget = budget
        self._sizes = sizes
        self._least = SMALLEST_SIZE[version]
        self._random = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._pauses: dict[int, float] = {}
        self._probed: dict[int, int] = {}
        self._judged: dict[int, tuple[int, int]] = {}
        self._probed_at: dict[int, float] = {}
        self._now, self._sleep = now, sleep
        self._deadline = now() + budget.seconds
        self._keep = keep
        self.progress = Progress()
        self.progress.samples.add(earlier)

    def interrupted(self) -> Progress:
        """Returns the state after `run` was interrupted."""
        self.progress.path = infer(self.progress.samples)
        self.progress.ended_by = "interrupt"
        return self.progress

    def run(self, show: Show) -> Progress:
        """Probes until the precision or the budget is reached, and passes the state to `show` meanwhile."""
        progress = self.progress
        self._scout(show)
        if self._left <= 0:
            return self._out_of_time()
        sizes = self._fitting()
        routers = [router.ttl for router in progress.samples.path() if router.answered]
        wanted = set(routers)
        while routers and not progress.is_converged:
            probed = wanted or set(routers)
            reason = self._spent(probed, sizes)
            if reason:
                progress.ended_by = reason
                break
            self._probe(self._round(sorted(probed), sizes), show)
            progress.rounds += 1
            if progress.rounds >= FIRST_ROUNDS and progress.rounds % 4 == 0:
                before, wanted = wanted, self._unknown(routers, sizes)
                # Frequent checks find intervals that are narrow by chance: require two in a row.
                progress.is_converged = not wanted and not before
        progress.path = infer(progress.samples)
        if progress.is_converged:
            progress.ended_by = "precision"
        return progress

    @property
    def _left(self) -> float:
        """The rest of the time limit in s."""
        return self._deadline - self._now()

    def _out_of_time(self) -> Progress:
        self.progress.path = infer(self.progress.samples)
        self.progress.ended_by = "time"
        return self.progress

    def _pause(self, seconds: float) -> None:
        self._sleep(max(0.0, min(seconds, self._left)))

    def separate_last_link(self, udp: Prober, show: Show) -> None:
        """Separates the forward and reverse rate of the last link by UDP probes of two sizes to the end.

        Does nothing unless an echo measured the last link. Sends few probes, since hosts limit their answers.
        """
        progress = self.progress
        end = progress.samples.path()[-1] if progress.samples.path() else None
        if end is None or not end.is_echo or not progress.path.links:
            return
        largest = max(end.seconds(), default=0)
        answers: dict[int, list[float]] = {}
        if largest - SMALL_QUOTED >= LEAST_SPAN:
            answers = self._answers_to_udp(udp, end.ttl, (SMALL_QUOTED, largest), show)
        progress.last = separated(progress.path, end, answers)
        progress.path = progress.last.path

    def _answers_to_udp(
        self, udp: Prober, ttl: int, sizes: tuple[int, int], show: Show
    ) -> dict[int, list[float]]:
        """Returns RTTs in s by size; none if the answers to the sizes differ in length."""
        found: dict[int, list[float]] = {size: [] for size in sizes}
        lengths: set[int] = set()
        for number in range(LAST_ROUNDS):
            if number >= BURST:
                self._pause(len(sizes) * SLOWEST_S)
            if self._left <= 0:
                break
            for probe in json.loads(udp.run([(ttl, size) for size in sizes], lambda _: self._left > 0)):
                answer = probe["answer"]
                seconds = probe["kernel_s" if self.progress.samples.clock.is_kernel else "application_s"]
                if answer is not None and answer["kind"] == REACHED and seconds is not None:
                    found[probe["size"]].append(seconds)
                    lengths.add(answer["size"])
            show(self.progress)
            missing = min(map(len, found.values())) < ENOUGH
            if not missing or (number + 1 >= BURST and not lengths):
                break
        return found if len(lengths) == 1 else {}

    def _unknown(self, routers: list[int], sizes: Sequence[int]) -> set[int]:
        """Returns the routers on both sides of imprecise links, and the end if its loss is imprecise."""
        budget, path = self._budget, infer(self.progress.samples)
        self.progress.path = path
        known = converged(path.links, budget.rate, budget.latency, budget.least_latency)
        wanted = {ttl for ttl in routers if not self._is_often_answered(ttl, sizes)}
        for link, is_known in zip(path.links, known, strict=True):
            if not is_known:
                wanted |= {link.ttls[0] - 1, *link.ttls}
        wanted |= {
            router.ttl
            for router in self.progress.samples.path()[-1:]
            if router.is_echo and not losses.is_known(router, LOSS, LOSS_SHARE)
        }
        if not path.links:
            return set(routers)
        return wanted & set(routers)

    def _is_often_answered(self, ttl: int, sizes: Sequence[int]) -> bool:
        trips = self.progress.samples.routers[ttl].seconds()
        return all(len(trips.get(size, ())) >= FIRST_ROUNDS for size in sizes)

    def _spent(self, wanted: Iterable[int], sizes: Sequence[int]) -> str:
        budget, samples = self._budget, self.progress.samples
        if all(self._probed.get(ttl, 0) >= budget.rounds * len(sizes) for ttl in wanted):
            return "rounds"
        if samples.count + len(sizes) > budget.probes:
            return "probes"
        return "time" if self._left <= self._reserve() else ""

    def _reserve(self) -> float:
        """Returns the time in s that `separate_last_link` may take."""
        is_echo = any(router.is_echo for router in self.progress.samples.path()[-1:])
        return min(LAST_SHARE * self._budget.seconds, LAST_S) if is_echo else 0.0

    def _scout(self, show: Show) -> None:
        """Finds the routers and the end, and the largest packet that the path takes."""
        samples, silent = self.progress.samples, 0
        largest = max(self._sizes) if self._sizes else LARGEST
        for ttl in range(1, self._budget.max_hops + 1):
            self._probe([(ttl, self._least)] * SCOUTS, show)
            if self._left <= 0:
                return
            if samples.routers[ttl].answered == 0:
                self._probe([(ttl, self._least)], show)
            router = samples.routers[ttl]
            silent = 0 if router.answered else silent + 1
            if router.answered:
                self._probe([(ttl, largest)], show)
            if router.is_end or silent >= SILENT:
                return

    def _fitting(self) -> tuple[int, ...]:
        """Returns the sizes that every link takes."""
        samples = self.progress.samples
        while True:
            too_big = samples.too_big
            reported = [mtu for mtu in too_big.values() if mtu]
            largest = min([max(self._sizes or [LARGEST]), *(size - 1 for size in too_big), *reported])
            if self._sizes:
                sizes = tuple(size for size in self._sizes if size <= largest)
            else:
                sizes = default_sizes(self._least, largest)
            known = len(too_big)
            ends = [router.ttl for router in samples.path() if router.answered][-1:]
            self._probe([(ttl, max(sizes)) for ttl in ends if sizes], lambda _: None)
            if len(samples.too_big) == known or self._left <= 0:
                return sizes

    def _round(self, routers: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int]]:
        probes: list[tuple[int, int]] = []
        now = self._now()
        for ttl in routers:
            pause = self._pauses.get(ttl, 0.0)
            count = min(len(sizes), self._budget.rounds * len(sizes) - self._probed.get(ttl, 0))
            if pause:
                count = min(count, int((now - self._probed_at.get(ttl, 0.0)) / pause))
            if count:
                self._probed_at[ttl] = now
                self._probed[ttl] = self._probed.get(ttl, 0) + count
            probes += [(ttl, size) for size in self._rarest(ttl, sizes, count)]
        self._random.shuffle(probes)
        if not probes:
            self._pause(min(self._pauses.get(ttl, SLOWEST_S) for ttl in routers))
        return probes

    def _rarest(self, ttl: int, sizes: Sequence[int], count: int) -> list[int]:
        """Returns the sizes with the fewest answers."""
        trips = self.progress.samples.routers[ttl].seconds()
        order = sorted(sizes, key=lambda size: (len(trips.get(size, ())), self._random.random()))
        return order[:count]

    def _probe(self, probes: list[tuple[int, int]], show: Show) -> None:
        samples = self.progress.samples

        def shown(_ended: int) -> bool:
            show(self.progress)
            return self._left > 0

        outcomes: list[dict[str, Any]] = json.loads(self._prober.run(probes, shown))
        samples.add(outcomes)
        if self._keep is not None:
            self._keep(outcomes)
        for router in samples.routers.values():
            probed, answered = self._judged.get(router.ttl, (0, 0))
            if router.sent - probed < JUDGED or not router.answered:
                continue
            if router.answered - answered < RARELY * (router.sent - probed):
                pause = self._pauses.get(router.ttl, 0.0)
                self._pauses[router.ttl] = min(max(2 * pause, 0.1), SLOWEST_S)
                self.progress.limited.add(router.ttl)
            self._judged[router.ttl] = (router.sent, router.answered)


__all__ = ["TOO_BIG", "Budget", "PathMeasurement", "Progress", "default_sizes"]
