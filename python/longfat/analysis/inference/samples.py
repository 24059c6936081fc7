"""Round trips to the routers of a path, by router and size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

REACHED, EXCEEDED, UNREACHABLE, TOO_BIG = "reached", "time-exceeded", "unreachable", "too-big"
FEW = 0.1
"""Answers without the kernel's stamp, of all, that are left aside."""


Trips = dict[str, dict[int, list[float]]]
"""Seconds by address and size."""


@dataclass
class Clock:
    """Which clock counts for all: the kernel's, unless it often leaves packets without a stamp.

    It begins to stamp a moment after it was asked to. Two clocks must not be mixed: their difference would
    look like a link.
    """

    answers: int = 0
    unstamped: int = 0

    @property
    def is_kernel(self) -> bool:
        """Whether what has no stamp is left aside, rather than all stamps."""
        return self.unstamped <= FEW * self.answers


@dataclass
class Router:
    """What is known of one time to live: who answered, and how soon by size."""

    ttl: int
    clock: Clock = field(default_factory=Clock)
    asked: int = 0
    answered: int = 0
    addresses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    by_kernel: Trips = field(default_factory=lambda: defaultdict(dict))
    by_application: Trips = field(default_factory=lambda: defaultdict(dict))
    answers: dict[tuple[str, int], int] = field(default_factory=dict)
    """Bytes of an answer with the IP header, by address and size of the probe."""

    @property
    def address(self) -> str | None:
        """Who answered most often; None where nobody did."""
        return self.addresses.most_common(1)[0][0] if self.addresses else None

    @property
    def loss(self) -> float:
        """The share of probes that were not answered."""
        return 1 - self.answered / self.asked if self.asked else 0.0

    @property
    def is_end(self) -> bool:
        """Whether the path ends here: the host itself, or somebody who knows no way to it."""
        return self.kinds[REACHED] + self.kinds[UNREACHABLE] > self.kinds[EXCEEDED]

    @property
    def is_echo(self) -> bool:
        """Whether the answers are as large as the probes: echo replies of the host at the end."""
        own = [(size, answer) for (address, size), answer in self.answers.items() if address == self.address]
        return self.is_end and all(size == answer for size, answer in own)

    def seconds(self) -> Mapping[int, list[float]]:
        """Round trips by size to the one that answered most often."""
        trips = self.by_kernel if self.clock.is_kernel else self.by_application
        return trips.get(self.address or "", {})


class Samples:
    """All answers so far."""

    def __init__(self) -> None:
        self.routers: dict[int, Router] = {}
        self.clock = Clock()
        self.too_big: dict[int, int | None] = {}
        """Sizes that a link does not take, and its MTU where it was told."""
        self.count = 0
        """Probes so far."""

    def add(self, probes: Iterable[Mapping[str, Any]]) -> None:
        """Adds what the prober told."""
        for probe in probes:
            self.count += 1
            answer = probe["answer"]
            if answer is not None and answer["kind"] == TOO_BIG:
                self.too_big[probe["size"]] = answer["mtu"]
                continue
            router = self.routers.setdefault(probe["ttl"], Router(probe["ttl"], self.clock))
            router.asked += 1
            if answer is None:
                continue
            address, size = answer["from"], probe["size"]
            router.answered += 1
            router.addresses[address] += 1
            router.kinds[answer["kind"]] += 1
            router.answers[address, size] = answer["size"]
            router.by_application[address].setdefault(size, []).append(probe["application_s"])
            self.clock.answers += 1
            if probe["kernel_s"] is None:
                self.clock.unstamped += 1
            else:
                router.by_kernel[address].setdefault(size, []).append(probe["kernel_s"])

    @property
    def end(self) -> int | None:
        """The time to live at which the path ends, if it is known."""
        return min((ttl for ttl, router in self.routers.items() if router.is_end), default=None)

    def path(self) -> list[Router]:
        """Routers from the first one to the end, those beyond it left out."""
        end = self.end
        last = end if end is not None else max((t for t, r in self.routers.items() if r.answered), default=0)
        return [router for ttl, router in sorted(self.routers.items()) if ttl <= last]
