"""`path`: latency, bandwidth and loss of each link to a host."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.api import sizes as size_lists
from longfat.api.defaults import ProbeProtocol
from longfat.api.quantities import Duration, duration
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.measured import links as path_report
from longfat.study import units
from longfat.system.parameters import ParameterError
from longfat.system.progress import watching

if TYPE_CHECKING:
    import polars

    from longfat.measurement.path import Progress
    from longfat.study.tables import Path
    from longfat.system.progress import Display

LONGEST_S = 60
LONGEST_MEASUREMENT_S = 86_400


@dataclass(frozen=True, repr=False)
class MeasuredPath(Displayed):
    """A measured path: `document` has every hop with its link and 95 % confidence intervals, as JSON values.

    `to_path()` is the path as a model for `simulate`, `run` and `predict`. `interrupted` is true if Ctrl-C
    stopped the measurement.
    """

    document: dict[str, Any]
    state: Progress = field(repr=False)
    interrupted: bool = False
    by_default_udp: str | None = None
    """Why probes use UDP, if ICMP was tried first."""

    @property
    def title(self) -> str:
        """Host, hops and probes."""
        about = self.document
        return f"Path to {about['host']}: {len(about['hops'])} hops, {about['probes']} probes"

    @property
    def links(self) -> bool:
        """Whether any link was measured."""
        return bool(self.state.path.links)

    def table(self) -> TextTable:
        """Returns a row for each hop: RTT, and latency, bandwidth and loss of its link with intervals."""
        return path_report.table(self.document)

    def remarks(self) -> list[str]:
        """Returns totals and assumptions."""
        return path_report.lines(self.document)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each hop, in s and bit/s; `_low` and `_high` bound 95 % intervals."""
        import polars as pl

        rows = []
        for hop in self.document["hops"]:
            link = hop["link"] or {}
            row = {key: hop[key] for key in ("ttl", "address", "unanswered", "least_rtt_s")}
            for key in ("latency_s", "rate_bps"):
                found = link.get(key) or {}
                row[key] = found.get("value")
                row |= {f"{key}_{bound}": found.get(bound) for bound in ("low", "high")}
            rows.append(row | {"loss_each_way": link.get("loss_each_way")})
        return pl.DataFrame(rows, infer_schema_length=None)

    def drawing(self) -> dict[str, Any] | None:
        """Returns the smallest round trips by size and router as Vega-Lite; None without links."""
        return path_report.drawing(self.state.samples.path()) if self.links else None

    def to_path(self) -> Path:
        """Returns the measured links as a path for `simulate`, `sweep`, `trace` and `run`.

        Raises:
            ValueError: if no link was measured.
        """
        from longfat.measurement.path_document import hops
        from longfat.study.tables import Path

        if not self.links:
            raise ValueError(self.failure())
        found: Any = hops(self.document)
        return Path(hops=found)

    def write_model(self, file: str | File) -> None:
        """Writes the path as a model for `longfat run --set path=@FILE`. Raises OSError."""
        from longfat.measurement.path_document import measured
        from longfat.study.path_model import PathModel, write

        write(file, PathModel(self.to_path().to_study(), measured(self.document)))

    def page(self) -> str:
        """Returns the report as HTML."""
        return path_report.page(self.document, self.state.samples.path())

    def failure(self) -> str:
        """Returns the likely reason for missing links, in one line."""
        return path_report.failure(self.document)


def path(
    host: str,
    *,
    protocol: ProbeProtocol | None = None,
    max_hops: int = 30,
    sizes: str | Iterable[int] | None = None,
    rounds: int = 64,
    budget: int = 20_000,
    time: Duration = "300s",
    precision: str = "5%",
    interval: Duration = "10ms",
    window: int = 1,
    timeout: Duration = "1s",
    port: int = 33_434,
    samples: File | str | None = None,
    progress: bool | None = None,
) -> MeasuredPath:
    """Measures latency, bandwidth and loss of each link to a host (Linux).

    Args:
        host: Name or address of the host at the end of the path.
        protocol: ICMP echo, or UDP to a closed port; by default icmp if permitted.
        max_hops: Most hops.
        sizes: Packet sizes with IP header, e.g. "100,600..1500:100"; by default 14 sizes.
        rounds: Most probes of each size to each router.
        budget: Most probes in total.
        time: Longest measurement; up to one `timeout` more for the last replies.
        precision: Half-width of a bandwidth's 95 % confidence interval at which measuring stops.
        interval: Shortest time between two probes.
        window: Most probes in flight, 1 to 16; several may queue behind each other.
        timeout: Longest wait for a reply.
        port: Destination port of UDP probes.
        samples: File for all samples; earlier ones of the same path count too.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        The measured path. After Ctrl-C, what was measured so far.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the system refuses to probe.
    """
    from longfat import _native
    from longfat.measurement.path import Budget, PathMeasurement
    from longfat.measurement.path_document import document
    from longfat.measurement.path_samples import SampleFile

    address, version = _resolve(host)
    requested = None if sizes is None else _sizes(sizes, version)
    keys = {
        "interval": duration("interval", interval, 0.001, LONGEST_S),
        "timeout": duration("timeout", timeout, 0.01, LONGEST_S),
    }
    prober, by, why = _prober(address, protocol, port, window=window, **keys)
    limits = Budget(
        rate=_proportion(precision),
        rounds=rounds,
        probes=budget,
        seconds=duration("time", time, 0.1, LONGEST_MEASUREMENT_S),
        max_hops=max_hops,
    )
    about = {"host": host, "address": address, "protocol": by}
    store = None if samples is None else SampleFile(File(samples), about)
    earlier = [] if store is None else store.open()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    measurement = PathMeasurement(
        prober, limits, requested, version=version, earlier=earlier, keep=None if store is None else store.add
    )
    display = watching(progress)
    show = _shower(display)
    interrupted = False
    try:
        state = measurement.run(show)
        if by == "icmp":
            # One probe at a time: hosts limit their answers to UDP.
            udp = _native.HopProber(address, "udp", port, window=1, **keys)
            measurement.separate_last_link(udp, show)
    except KeyboardInterrupt:
        state, interrupted = measurement.interrupted(), True
    finally:
        display.close()
    return MeasuredPath(document(state, {**about, "when": when}), state, interrupted, why)


def _proportion(text: str) -> float:
    try:
        return units.proportion(text)
    except ValueError as error:
        raise ParameterError("precision", str(error)) from None


def _sizes(given: str | Iterable[int], version: int) -> tuple[int, ...]:
    from longfat.measurement.path import LARGEST_SIZE, MOST_SIZES, SMALLEST_SIZE

    found = size_lists.read("sizes", given)
    least, most = SMALLEST_SIZE[version], LARGEST_SIZE
    if not (4 <= len(found) <= MOST_SIZES and least <= found[0] <= found[-1] <= most):
        raise ParameterError("sizes", f"4 to {MOST_SIZES} sizes from {least} to {most} bytes are allowed")
    return found


def _resolve(host: str) -> tuple[str, int]:
    """Returns a host's address and the version of IP. Raises ParameterError for an unknown host."""
    from longfat.system.threads import DaemonPool

    try:
        # On another thread, so that Ctrl-C ends the wait for a name server.
        resolver = DaemonPool(1, "resolver")
        found = resolver.submit(partial(socket.getaddrinfo, host, type=socket.SOCK_DGRAM), None).result()
    except OSError as error:
        raise ParameterError("host", f'"{host}" cannot be resolved: {error.strerror}') from None
    family, _, _, _, (address, *_) = found[0]
    return str(address), 4 if family == socket.AF_INET else 6


def _prober(
    address: str, protocol: ProbeProtocol | None, port: int, **keys: Any
) -> tuple[Any, str, str | None]:
    """Returns the prober, its protocol, and why it is not the default one."""
    from longfat import _native

    if protocol is not None:
        return _native.HopProber(address, protocol, port, **keys), protocol, None
    try:
        return _native.HopProber(address, "icmp", port, **keys), "icmp", None
    except OSError as error:
        return _native.HopProber(address, "udp", port, **keys), "udp", str(error)


def _shower(display: Display) -> Callable[[Progress], None]:
    def show(progress: Progress) -> None:
        routers = sum(1 for router in progress.samples.routers.values() if router.answered)
        links = f", {len(progress.path.links)} links found" if progress.path.links else ""
        counts = f"{progress.samples.count} probes, {routers} routers, round {progress.rounds + 1}"
        display.show("", counts + links)

    return show
