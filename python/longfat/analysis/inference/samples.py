"""Round trips to the routers of a path, by router and size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

REACHED, EXCEEDED, UNREACHABLE, TOO_BIG = "reached", "time-exceeded", "unreachable", "too-big"


@dataclass
class Router:
    """What is known of one time to live: who answered, and how soon by size."""

    ttl: int
    asked: int = 0
    answered: int = 0
    addresses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    trips: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(dict))
    """Seconds by address and size."""
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

    def seconds(self) -> Mapping[int, list[float]]:
        """Round trips by size to the one that answered most often."""
        return self.trips[self.address] if self.address is not None else {}


class Samples:
    """All answers so far."""

    def __init__(self) -> None:
        self.routers: dict[int, Router] = {}
        self.too_big: dict[int, int | None] = {}
        """Sizes that a link does not take, and its MTU where it was told."""
        self.is_stamped = True
        """Whether the kernel stamped every packet: else all times are the application's."""
        self._all: list[dict[str, Any]] = []

    def add(self, probes: Iterable[Mapping[str, Any]]) -> None:
        """Adds what the prober told."""
        for probe in probes:
            self._all.append(dict(probe))
            answer = probe["answer"]
            if answer is not None and answer["kind"] == TOO_BIG:
                self.too_big[probe["size"]] = answer["mtu"]
                continue
            router = self.routers.setdefault(probe["ttl"], Router(probe["ttl"]))
            router.asked += 1
            if answer is None:
                continue
            router.answered += 1
            router.addresses[answer["from"]] += 1
            router.kinds[answer["kind"]] += 1
            router.answers[answer["from"], probe["size"]] = answer["size"]
            seconds = probe["kernel_s"]
            if seconds is None:
                self.is_stamped = False
                seconds = probe["application_s"]
            router.trips[answer["from"]].setdefault(probe["size"], []).append(seconds)
        if not self.is_stamped:
            self._by_application()

    def _by_application(self) -> None:
        """Two clocks must not be mixed: their difference would look like a link."""
        for router in self.routers.values():
            router.trips.clear()
        for probe in self._all:
            answer = probe["answer"]
            if answer is not None and answer["kind"] != TOO_BIG:
                trips = self.routers[probe["ttl"]].trips[answer["from"]]
                trips.setdefault(probe["size"], []).append(probe["application_s"])

    @property
    def count(self) -> int:
        """Probes so far."""
        return len(self._all)

    @property
    def end(self) -> int | None:
        """The time to live at which the path ends, if it is known."""
        return min((ttl for ttl, router in self.routers.items() if router.is_end), default=None)

    def path(self) -> list[Router]:
        """Routers from the first one to the end, those beyond it left out."""
        end = self.end
        last = end if end is not None else max((t for t, r in self.routers.items() if r.answered), default=0)
        return [router for ttl, router in sorted(self.routers.items()) if ttl <= last]
