"""A relay of TCP connections over an emulated path, in wall time."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from longfat import _native
from longfat.api import addresses
from longfat.api.relay_path import changed_path
from longfat.api.relay_progress import SIDES
from longfat.api.relays import RelayRates
from longfat.api.servers import Server, Stoppable
from longfat.api.tcp_relay_progress import PROXIES, TcpRelayProgress
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from pathlib import Path as File

    from longfat.api.relay_control import ControlServer
    from longfat.api.relay_schedule import Schedule

Direction = Literal["both", "forward", "reverse"]
"""Directions of the path; forward is from the clients to the targets."""
_LEFT_OUT = ("stack", "path", "fast_open", "ttcp")
"""Keys of TCP that have no meaning for a relay."""


@dataclass(frozen=True)
class Pair:
    """A listening address and its target: HOST:PORT, or a proxy protocol of TCP."""

    listen: str
    target: str
    is_udp: bool = False

    @property
    def transport(self) -> str:
        """The transport protocol of its clients."""
        return "UDP" if self.is_udp else "TCP"

    @property
    def options(self) -> dict[str, str]:
        """The pair as the native part reads it."""
        return {"listen": self.listen, "target": self.target}


def pairs_of(
    tcp: bool | str | Sequence[str],
    to: str | None,
    listen: str | None,
    socks: str | None = None,
    http_connect: str | None = None,
    udp: str | Sequence[str] = (),
) -> list[Pair]:
    """Returns the checked addresses of a TCP relay, those for UDP last. Raises ParameterError."""
    found = []
    if tcp is True:
        if to is None:
            raise ParameterError("to", "the address of the server is missing")
        found = [_pair(addresses.ANY if listen is None else listen, to, "listen")]
    elif to is not None:
        raise ParameterError("to", "not with {tcp}: write LISTEN=TARGET there, and in {udp} for UDP")
    elif listen is not None:
        raise ParameterError("listen", "not with {tcp}, {socks} and {http_connect}, which name their own")
    if not isinstance(tcp, bool):
        found += _pairs(tcp, "tcp")
    for parameter, address in (("socks", socks), ("http_connect", http_connect)):
        if address is not None:
            found.append(Pair(addresses.listening(address, parameter), PROXIES[parameter].mode))
    if not found:
        raise ParameterError("tcp", "empty: write LISTEN=TARGET, or set {socks} or {http_connect}")
    datagrams = _pairs(udp, "udp")
    for pair in datagrams:
        if addresses.is_wildcard(pair.listen):
            raise ParameterError(
                "udp",
                f'"{pair.listen}": write one address of this machine, e.g. {addresses.LISTEN}: '
                "replies must leave from the address that clients send to",
            )
    return found + [replace(pair, is_udp=True) for pair in datagrams]


def _pairs(texts: str | Sequence[str], parameter: str) -> list[Pair]:
    found = []
    for text in [texts] if isinstance(texts, str) else texts:
        at, equals, target = text.partition("=")
        if not equals:
            raise ParameterError(
                parameter, f'"{text}": write LISTEN=TARGET, e.g. 127.0.0.1:15432=127.0.0.1:5432'
            )
        found.append(_pair(at, target, parameter))
    return found


def _pair(listen: str, target: str, parameter: str) -> Pair:
    pair = Pair(addresses.listening(listen, parameter), addresses.peer(target, parameter))
    if pair.listen == pair.target:
        raise ParameterError(parameter, f"{pair.target} is both ends: the relay would connect to itself")
    return pair


def tcp_settings(protocol: Any) -> dict[str, Any]:
    """Returns the checked keys of TCP. Raises ValueError."""
    from longfat.study.problems import Problem, StudyError
    from longfat.study.tables import protocol_settings, refuse

    settings = {"kind": "tcp"} if protocol is None else protocol_settings(protocol)
    if settings.get("kind") != "tcp":
        raise ParameterError(
            "protocol", f'"{settings.get("kind")}": a relay of TCP connections needs kind "tcp"'
        )
    refuse("protocol", settings)
    problems = [
        Problem(key, "a relay has longfat's own TCP, one path, and a handshake with its target")
        for key in _LEFT_OUT
        if key in settings
    ]
    if problems:
        raise StudyError("", problems)
    return settings


class TcpRelay(Stoppable):
    """A running relay of TCP connections, in a thread. `stop()` or the end of a `with` block ends it.

    `address` is where clients connect to, `addresses` has all listening addresses. `report` has the counters
    so far. The methods `set`, `start_outage`, `end_outage`, `drop_next` and `reset_connections` change the
    path while connections use it.
    """

    def __init__(
        self,
        path: dict[str, Any],
        pairs: Sequence[Pair],
        protocol: Mapping[str, Any],
        *,
        separate: bool,
        seed: int,
        pcapng: str | File | None = None,
        progress: TcpRelayProgress,
        wait: bool,
        control: ControlServer | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self.pairs = tuple(pairs)
        self.addresses: list[str] = []
        """The listening addresses, in the order of the parameters, those for UDP last."""
        self.path: dict[str, Any] = {}
        """The keys of the path by direction, `forward` and `reverse`."""
        self.control = control
        """The control interface; None if there is none."""
        self._settings = copy.deepcopy(path)
        self._change = threading.Lock()
        self._progress = progress
        self._schedule = schedule
        self._rates = RelayRates()
        self._last: dict[str, Any] = {}
        self._ended = False
        options = {
            "listeners": [pair.options for pair in pairs if not pair.is_udp],
            "udp": [pair.options for pair in pairs if pair.is_udp],
            "path": path,
            "protocol": dict(protocol),
            "separate": separate,
            "seed": seed,
            "pcapng": None if pcapng is None else str(pcapng),
        }
        self._native = _native.TcpRelay(json.dumps(options))
        try:
            self._server = Server(self._serve, self._handle, wait=wait)
        finally:
            if wait:
                self._close()

    def _serve(self, handle: Callable[[str], bool]) -> str:
        try:
            result = self._native.run(handle)
            self._last = json.loads(result)
        finally:
            self._ended = True
        return result

    def _handle(self, report: dict[str, Any]) -> None:
        if "listening" in report:
            self.path, self.addresses = report["path"], report["addresses"]
            listening = [
                (address, pair.target, pair.transport)
                for address, pair in zip(self.addresses, self.pairs, strict=True)
            ]
            self._progress.start(listening, self.path)
            if self.control is not None:
                self.control.start(self)
                self._progress.note(f"Control: {self.control.url} (token {self.control.token})")
            if self._schedule is not None:
                self._schedule.start(self, self._progress.note)
        elif "failure" in report:
            self._progress.fail(report["target"], report["failure"])
        else:
            self._last = report
            self._progress.show(report, self._rates.update(report))

    def _close(self) -> None:
        if self._schedule is not None:
            self._schedule.stop()
        if self.control is not None:
            self.control.stop()
        self._progress.close()

    @property
    def address(self) -> str:
        """The first address for clients."""
        return self._server.address

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of the path as set, without those of a preset."""
        return copy.deepcopy(self._settings)

    @property
    def report(self) -> dict[str, Any]:
        """The counters so far."""
        report = self._last if self._ended else json.loads(self._native.report())
        if not report:
            return {}
        rates = self._rates.overall(report)
        return {**report, **{side: {**report[side], "rate_bps": rates[side]} for side in SIDES}}

    def set(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Changes keys of the path, also nested ones such as "reverse.loss"; None removes a key.

        Packets on the path arrive as scheduled. `cell`, `wifi` and `down` cannot change.

        Returns:
            The keys of the path by direction.

        Raises:
            ValueError: with the key, the value and what is allowed; the path is then unchanged.
            OSError: if the relay has stopped.
        """
        with self._change:
            changed = changed_path(self._settings, settings)
            self.path = json.loads(self._native.set_path(json.dumps(changed)))
            self._settings = changed
            return self.path

    def start_outage(self, duration: str, direction: Direction = "both") -> None:
        """Takes the path down for a time, such as "2s". Packets that wait or arrive meanwhile are dropped.

        Raises:
            ValueError: for a duration or direction that is not valid.
            OSError: if the relay has stopped.
        """
        from longfat.api.quantities import duration as seconds

        self._native.start_outage(seconds("duration", duration, 0.001, 86_400.0), *_sides(direction))

    def end_outage(self) -> None:
        """Ends outages of `start_outage`. Raises OSError if the relay has stopped."""
        self._native.end_outage()

    def drop_next(self, count: int = 1, direction: Direction = "both") -> None:
        """Drops the next packets in each direction that the loss model spares.

        Raises:
            ValueError: for a count below 1 or a direction that is not valid.
            OSError: if the relay has stopped.
        """
        from longfat.api.specification import whole_number

        number = whole_number(count, "count")
        if number < 1:
            raise ParameterError("count", f"{number} is out of range: 1 or more")
        self._native.lose_next(number, *_sides(direction))

    def reset_connections(self) -> None:
        """Resets all connections at both ends. Raises OSError if the relay has stopped."""
        self._native.reset_all()

    def stop(self) -> dict[str, Any]:
        """Stops the relay, which resets its connections, and returns its last report."""
        self._server.stop()
        self._close()
        return self.report

    def __repr__(self) -> str:
        state = "stopped" if self._ended else "running"
        pairs = ", ".join(
            f"{at} to {pair.target} ({pair.transport})"
            for at, pair in zip(self.addresses, self.pairs, strict=False)
        )
        return f"TcpRelay({pairs}, {state})"


def _sides(direction: str) -> tuple[bool, bool]:
    if direction not in ("both", *SIDES):
        raise ParameterError("direction", f'"{direction}" is unknown; allowed: both, forward, reverse')
    return direction != "reverse", direction != "forward"
