"""`relay`: an emulated path between programs, in wall time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from longfat import _native
from longfat.api import addresses
from longfat.api.relay_progress import SIDES, RelayProgress
from longfat.api.servers import Server, Stoppable
from longfat.system.parameters import ParameterError
from longfat.system.progress import Rate, watching

if TYPE_CHECKING:
    from pathlib import Path as File

    from longfat.api.tcp_relays import Pair, TcpRelay
    from longfat.study.tables import Path

_RATE_OVER_S = 1.0


class RelayRates:
    """The rates of both directions of a relay, from its reports."""

    def __init__(self) -> None:
        self._meters = {side: Rate(_RATE_OVER_S) for side in SIDES}
        # Time and bytes of the first and the last delivery of each link.
        self._first: dict[str, tuple[float, int]] = {}
        self._last: dict[str, tuple[float, int]] = {}

    def update(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Adds a report; returns the current rates in bit/s."""
        now = time.monotonic()
        rates = {}
        for side in SIDES:
            count = report[side]["delivered_bytes"]
            rates[side] = self._meters[side].update(count, now) * 8
            if count != self._last.get(side, (0.0, 0))[1]:
                self._first.setdefault(side, (now, count))
                self._last[side] = (now, count)
        return rates

    def overall(self, report: Mapping[str, Any]) -> dict[str, float | None]:
        """Returns bit/s between the first and the last delivery of each link; None with fewer than two."""
        found: dict[str, float | None] = {}
        for side in SIDES:
            (begin, before), (end, _) = self._first.get(side, (0.0, 0)), self._last.get(side, (0.0, 0))
            count = report[side]["delivered_bytes"] - before
            found[side] = count * 8 / (end - begin) if end > begin else None
        return found


def ends(listen: str, to: str) -> tuple[str, str]:
    """Returns the checked addresses of a relay. Raises ParameterError."""
    address, target = addresses.listening(listen, "listen"), addresses.peer(to, "to")
    if address == target:
        raise ParameterError("to", f"{target} is also {{listen}}: the relay would send to itself")
    return address, target


class Relay(Stoppable):
    """A running relay, in a thread. `stop()` or the end of a `with` block ends it.

    `address` is where clients send to. `report` has the counters of both directions so far: packets
    `entered`, `delivered`, `lost`, ..., bytes, and `rate_bps` between the first and the last delivery.
    """

    def __init__(
        self, path: dict[str, Any], to: str, listen: str, seed: int, progress: RelayProgress, *, wait: bool
    ) -> None:
        self.to = to
        self.path: dict[str, Any] = {}
        """The keys of the path by direction, `forward` and `reverse`."""
        self._progress = progress
        self._rates = RelayRates()
        self._last: dict[str, Any] = {}
        self._server = Server(
            lambda handle: _native.relay(listen, to, json.dumps(path), seed, handle), self._handle, wait=wait
        )

    def _handle(self, report: dict[str, Any]) -> None:
        if "listening" in report:
            self.path = report["path"]
            self._progress.start(report["listening"], self.path)
        else:
            self._last = report
            self._progress.show(report, self._rates.update(report))

    @property
    def address(self) -> str:
        """The address for clients."""
        return self._server.address

    @property
    def report(self) -> dict[str, Any]:
        """The counters so far; empty before the first packet."""
        last = self._last if self._server.is_running else json.loads(self._server.result or "{}")
        if not last:
            return {}
        rates = self._rates.overall(last)
        return {**last, **{side: {**last[side], "rate_bps": rates[side]} for side in SIDES}}

    def stop(self) -> dict[str, Any]:
        """Stops the relay and returns its last report."""
        self._server.stop()
        self._progress.close()
        return self.report

    def __repr__(self) -> str:
        state = "running" if self._server.is_running else "stopped"
        return f"Relay({self.address} to {self.to}, {state})"


@overload
def relay(  # type: ignore[overload-overlap]  # socks and http_connect decide without tcp
    path: Path | Mapping[str, Any],
    to: str,
    *,
    listen: str | None = ...,
    tcp: Literal[False] = ...,
    seed: SupportsIndex = ...,
    progress: bool = ...,
    wait: bool = ...,
) -> Relay: ...


@overload
def relay(
    path: Path | Mapping[str, Any],
    to: str | None = ...,
    *,
    listen: str | None = ...,
    tcp: bool | str | Sequence[str] = ...,
    udp: str | Sequence[str] = ...,
    socks: str | None = ...,
    http_connect: str | None = ...,
    separate: bool = ...,
    protocol: Any = ...,
    control: bool | str = ...,
    token: str | None = ...,
    schedule: str | File | None = ...,
    pcapng: str | File | None = ...,
    seed: SupportsIndex = ...,
    progress: bool = ...,
    wait: bool = ...,
) -> TcpRelay: ...


def relay(
    path: Path | Mapping[str, Any],
    to: str | None = None,
    *,
    listen: str | None = None,
    tcp: bool | str | Sequence[str] = False,
    udp: str | Sequence[str] = (),
    socks: str | None = None,
    http_connect: str | None = None,
    separate: bool = False,
    protocol: Any = None,
    control: bool | str = False,
    token: str | None = None,
    schedule: str | File | None = None,
    pcapng: str | File | None = None,
    seed: SupportsIndex = 1,
    progress: bool = False,
    wait: bool = False,
) -> Relay | TcpRelay:
    """Relays UDP datagrams or TCP connections over an emulated path, in the background.

    TCP connections end at the relay (Linux): longfat's own TCP carries their bytes over the path, on which
    they share queues.

    Args:
        path: The path between clients and servers; forward is from the clients.
        to: Address of the server, e.g. "127.0.0.1:9000"; not with pairs in `tcp`.
        listen: Local address for clients; port 0 for any free one. By default 127.0.0.1:0; not with pairs
            in `tcp`.
        tcp: TCP instead of UDP: True for `listen` and `to`, or pairs "LISTEN=TARGET".
        udp: Pairs "LISTEN=TARGET" for UDP on the same path, with `tcp`, `socks` or `http_connect`.
        socks: Listening address for TCP clients that name their target by SOCKS5.
        http_connect: Listening address for TCP clients that name their target by HTTP CONNECT.
        separate: Whether each connection, and each client of `udp`, has its own path.
        protocol: TCP on the path, such as `longfat.Tcp("bbr")`; by default Linux's with CUBIC.
        control: Whether to open the control interface for TCP, at port 8475, or its address.
        token: Token of the control interface; by default a random one.
        schedule: TOML file with changes of a TCP relay's path.
        pcapng: Capture of the packets on a TCP relay's path, at both of its ends; complete once the relay has
            stopped.
        seed: Random seed of losses and delays.
        progress: Whether to show the address, the path and the traffic.
        wait: Whether to relay until Ctrl-C, not in the background.

    Returns:
        The running relay; with `wait`, the stopped one.

    Raises:
        ValueError: with the key or parameter and what is allowed.
        OSError: if an address is in use, or a file cannot be written.
    """
    # Commands import this module, and start without the checks of studies.
    from longfat.api.specification import whole_number
    from longfat.study.tables import refuse, table_of

    table = table_of(path, "path")
    refuse("path", table)
    number = whole_number(seed, "seed")
    if tcp is not False or socks is not None or http_connect is not None:
        from longfat.api.tcp_relays import pairs_of

        return _tcp_relay(
            table,
            pairs_of(tcp, to, listen, socks, http_connect, udp),
            _Changes(control, token, schedule),
            protocol=protocol,
            separate=separate,
            seed=number,
            pcapng=pcapng,
            progress=progress,
            wait=wait,
        )
    if udp:
        raise ParameterError(
            "udp", "with {tcp}, {socks} or {http_connect} only: for UDP alone write {to} and {listen}"
        )
    only_tcp = {
        "separate": separate,
        "protocol": protocol is not None,
        "control": control is not False,
        "token": token is not None,
        "schedule": schedule is not None,
        "pcapng": pcapng is not None,
    }
    for parameter, is_set in only_tcp.items():
        if is_set:
            raise ParameterError(parameter, "for TCP only: set {tcp}, {socks} or {http_connect}")
    if to is None:
        raise ParameterError(
            "to", "missing: write HOST:PORT of the server, or set {tcp}, {socks} or {http_connect}"
        )
    address, target = ends(addresses.ANY if listen is None else listen, to)
    shown = RelayProgress(watching(progress, log=True), target)
    try:
        return Relay(table, target, address, number, shown, wait=wait)
    except BaseException:
        shown.close()
        raise


@dataclass(frozen=True)
class _Changes:
    """How the path of a TCP relay changes at run time: the control interface, its token, and a schedule."""

    control: bool | str
    token: str | None
    schedule: str | File | None


def _tcp_relay(
    path: dict[str, Any],
    pairs: Sequence[Pair],
    changes: _Changes,
    *,
    protocol: Any,
    separate: bool,
    seed: int,
    pcapng: str | File | None,
    progress: bool,
    wait: bool,
) -> TcpRelay:
    from longfat.api.relay_control import control_server
    from longfat.api.relay_path import refuse_unsupported
    from longfat.api.relay_schedule import read_schedule
    from longfat.api.tcp_relay_progress import TcpRelayProgress
    from longfat.api.tcp_relays import TcpRelay, tcp_settings

    refuse_unsupported(path, section="path.")
    settings = tcp_settings(protocol)
    schedule = None if changes.schedule is None else read_schedule(changes.schedule, path)
    server = control_server(changes.control, changes.token)
    shown = TcpRelayProgress(watching(progress, log=True))
    try:
        return TcpRelay(
            path,
            pairs,
            settings,
            separate=separate,
            seed=seed,
            pcapng=pcapng,
            progress=shown,
            wait=wait,
            control=server,
            schedule=schedule,
        )
    except BaseException:
        shown.close()
        if server is not None:
            server.stop()
        raise
