"""Round trips to the routers of a path, by router and size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

REACHED, EXCEEDED, UNREACHABLE, TOO_BIG = "reached", "time-exceeded", "unreachable", "too-big"
FEW = 0.1
"""The share of replies without a kernel timestamp up to which they are ignored."""


Trips = dict[str, dict[int, list[float]]]
"""Seconds by address and size."""


@dataclass
class Clock:
    """The clock for all round trips: the kernel's, unless it often omits timestamps.

    The kernel starts timestamping a moment after it is enabled. Clocks must not be mixed: their difference
    would look like a link.
    """

    answers: int = 0
    unstamped: int = 0

    @property
    def is_kernel(self) -> bool:
        """Whether to use kernel timestamps and ignore replies without one."""
        return self.unstamped <= FEW * self.answers


@dataclass
class Router:
    """The replies to probes of one TTL: addresses and round trips by size."""

    ttl: int
    clock: Clock = field(default_factory=Clock)
    sent: int = 0
    answered: int = 0
    addresses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    by_kernel: Trips = field(default_factory=lambda: defaultdict(dict))
    by_application: Trips = field(default_factory=lambda: defaultdict(dict))
    answers: dict[tuple[str, int], int] = field(default_factory=dict)
    """Bytes of a reply including the IP header, by address and probe size."""

    @property
    def address(self) -> str | None:
        """The address with the most replies; None without replies."""
        return self.addresses.most_common(1)[0][0] if self.addresses else None

    @property
    def loss(self) -> float:
        """The share of probes without a reply."""
        return 1 - self.answered / self.sent if self.sent else 0.0

    @property
    def is_end(self) -> bool:
        """Whether the path ends here: at the host itself, or at a router without a route to it."""
        return self.kinds[REACHED] + self.kinds[UNREACHABLE] > self.kinds[EXCEEDED]

    @property
    def is_echo(self) -> bool:
        """Whether the replies are as large as the probes: echo replies of the host at the end."""
        own = [(size, answer) for (address, size), answer in self.answers.items() if address == self.address]
        return self.is_end and all(size == answer for size, answer in own)

    def seconds(self) -> Mapping[int, list[float]]:
        """Round trips by size to the address with the most replies."""
        trips = self.by_kernel if self.clock.is_kernel else self.by_application
        return trips.get(self.address or "", {})


class Samples:
    """All probes and replies of a path measurement."""

    def __init__(self) -> None:
        self.routers: dict[int, Router] = {}
        self.clock = Clock()
        self.too_big: dict[int, int | None] = {}
        """Sizes that exceed a link's MTU, with the MTU if a router reported it."""
        self.count = 0
        """Number of probes."""

    def add(self, probes: Iterable[Mapping[str, Any]]) -> None:
        """Adds results of the prober."""
        for probe in probes:
            self.count += 1
            answer = probe["answer"]
            if answer is not None and answer["kind"] == TOO_BIG:
                self.too_big[probe["size"]] = answer["mtu"]
                continue
            router = self.routers.setdefault(probe["ttl"], Router(probe["ttl"], self.clock))
            router.sent += 1
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
        """The TTL at which the path ends; None if unknown."""
        return min((ttl for ttl, router in self.routers.items() if router.is_end), default=None)

    def path(self) -> list[Router]:
        """The routers from the first one to the end of the path."""
        end = self.end
        last = end if end is not None else max((t for t, r in self.routers.items() if r.answered), default=0)
        return [router for ttl, router in sorted(self.routers.items()) if ttl <= last]
