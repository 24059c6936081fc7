"""The Python API: `run` runs a study, `simulate` one trial."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as _File
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from longfat import _native
from longfat.results import RunResult
from longfat.study import Overrides, Study, StudyError, load_study
from longfat.study.plain import plain, protocol_table, traffic_table
from longfat.study.problems import Problem, show
from longfat.study.vocabulary import Section, canonical, check, short_metric

if TYPE_CHECKING:
    import polars

    from longfat.controllers import CongestionController

__all__ = [
    "GoBackN",
    "Path",
    "Protocol",
    "SelectiveRepeat",
    "StopAndWait",
    "Tcp",
    "Topology",
    "TransferError",
    "Trial",
    "run",
    "simulate",
]


class _Settings:
    """Checked settings of one section; `longfat list` shows the keys."""

    _section: ClassVar[Section]

    def __init__(self, **settings: Any) -> None:
        given = {key: value for key, value in settings.items() if value is not None}
        self.settings: dict[str, Any] = _table(given, self._section)
        _refuse(self._section, self.settings)

    def to_study(self) -> dict[str, Any]:
        """Returns the settings as the table of a study."""
        return self.settings

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self.to_study().items())
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Settings) and (self._section, self.to_study()) == (
            other._section,
            other.to_study(),
        )

    def __hash__(self) -> int:
        return hash((self._section, canonical(self.to_study())))


class Path(_Settings):
    """The path between two hosts.

    Args:
        **settings: The keys of a study's `[path]`, quantities as text with their unit: `rate` ("10Mbit/s"),
            `delay` ("20ms", one way), `loss` ("1%"), `queue` ("100pkt"), `preset` ("lte") and more;
            `longfat list path` shows all.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Path(rate="10Mbit/s", delay="20ms", loss="1%")
    Path(rate='10Mbit/s', delay='20ms', loss='1%')
    """

    _section = "path"


class Topology(_Settings):
    """Several hosts with routers and links between them.

    Args:
        kind: Shape: "dumbbell", "parking-lot", "star", "tree" or "free" (see `longfat list topologies`).
        **settings: Keys of that shape; links are dicts with the keys of `Path`.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s", "delay": "20ms"})
    Topology(kind='dumbbell', pairs=2, bottleneck={'rate': '10Mbit/s', 'delay': '20ms'})
    """

    _section = "topology"

    def __init__(self, kind: str, **settings: Any) -> None:
        super().__init__(kind=kind, **settings)


class Protocol(_Settings):
    """A protocol by its kind.

    Args:
        kind: Kind as in a study's `[[protocols]]` ("go-back-n"); `longfat list protocols` shows all.
        name: Name in a study's tables; by default the congestion controller or the kind.
        **settings: Keys of the protocol: `window` (packets, or "auto"), `mss` ("1024B"), `rto` ("adaptive",
            "200ms"), ...

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Protocol("selective-repeat", window=8)
    Protocol(kind='selective-repeat', window=8)
    """

    _section = "protocol"

    def __init__(self, kind: str, *, name: str | None = None, **settings: Any) -> None:
        super().__init__(kind=kind, **settings)
        self.name = name

    def to_study(self) -> dict[str, Any]:
        """Returns the settings as an entry of a study's protocols."""
        return self.settings if self.name is None else {"name": self.name, **self.settings}


class StopAndWait(Protocol):
    """Stop-and-wait: one packet, then its acknowledgement. Takes the keys of `Protocol`.

    >>> StopAndWait(rto="200ms")
    StopAndWait(kind='stop-and-wait', rto='200ms')
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__("stop-and-wait", **settings)


class GoBackN(Protocol):
    """Go-Back-N: retransmits all packets of the window from a lost one on. Takes the keys of `Protocol`.

    >>> GoBackN(window=8)
    GoBackN(kind='go-back-n', window=8)
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__("go-back-n", **settings)


class SelectiveRepeat(Protocol):
    """Selective repeat: retransmits only the lost packets of the window.

    Takes the keys of `Protocol`.

    >>> SelectiveRepeat(window="auto")
    SelectiveRepeat(kind='selective-repeat', window='auto')
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__("selective-repeat", **settings)


class Tcp(Protocol):
    """TCP. Takes the keys of `Protocol` with kind "tcp".

    Args:
        congestion: Name of a controller ("reno", "vegas"), a class derived from `CongestionController`, or a
            dict with kind and settings.
        **settings: `profile` ("linux", "rfc", "ns3"), `ecn`, `receive_buffer`, ...

    >>> Tcp("vegas", profile="rfc")
    Tcp(kind='tcp', congestion='vegas', profile='rfc')
    """

    def __init__(
        self,
        congestion: str | type[CongestionController] | Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__("tcp", congestion=congestion, **settings)


class TransferError(RuntimeError):
    """A failed transfer. The text is the reason."""


@dataclass(frozen=True)
class Trial:
    """The result of one trial.

    `metrics` maps each metric's name with its unit (`goodput_bps`) to its value. Each metric is also an
    attribute, with or without its unit (`trial.goodput_bps`, `trial.goodput`). The metric of one host has the
    host's name after an @ (`goodput_bps@s1`). `flows_to_polars()` returns the flows.
    """

    metrics: dict[str, float]
    spec: dict[str, Any]
    columns: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The flows as columns from the native part, for `longfat.flow_table`."""

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The flows as dicts, in the order of their starts; `path_bytes` is a list here."""
        from longfat.flow_table import flow_table

        return flow_table(self.columns).to_dicts()

    def flows_to_polars(self) -> polars.DataFrame:
        """Returns one row for each flow, in the order of their starts, with the columns of a run's flows."""
        from longfat.flow_table import flow_table
        from longfat.frames import flows_frame

        return flows_frame(flow_table(self.columns))

    def __getattr__(self, name: str) -> float:
        if not name.startswith("_"):
            for column, value in self.metrics.items():
                if name in (column, short_metric(column)):
                    return value
        known = ", ".join(self.metrics) if "metrics" in self.__dict__ else ""
        raise AttributeError(f"no metric {name!r}; allowed: {known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.metrics]


def simulate(
    protocol: Protocol | type[CongestionController] | Mapping[str, Any] | str,
    path: Path | Topology | Mapping[str, Any] | None = None,
    size: str | None = None,
    *,
    topology: Topology | Mapping[str, Any] | None = None,
    traffic: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    workload: Mapping[str, Any] | None = None,
    seed: SupportsIndex = 1,
    trial: SupportsIndex = 0,
) -> Trial:
    """Simulates one trial in virtual time.

    Args:
        protocol: `GoBackN(window=8)`, `Tcp("reno")` and the like, a study's keys as a dict, or a name or
            controller class: "cubic" is `Tcp("cubic")`, "go-back-n" is `GoBackN()`.
        path: `Path(rate="10Mbit/s", delay="20ms")`, or a study's keys as a dict; or a `Topology`.
        topology: Instead of a path, `Topology("dumbbell", ...)` or a study's keys as a dict.
        traffic: Background flows, each with the keys of a study's `[[traffic]]`.
        size: Size of the transfer with its unit ("2MB"): short for a workload of kind "file".
        workload: Instead of a size, a study's workload as a dict.
        seed: Random seed; equal seeds give equal results.
        trial: Number of the trial; all protocols have the same losses in the same trial.

    Returns:
        The trial's metrics: goodput in bit/s, times in s, counts in packets.

    Raises:
        ValueError: with the key, the value and what is allowed.
        TransferError: for a failed transfer (for example a peer that never answers).

    >>> trial = simulate(GoBackN(window=8), Path(rate="10Mbit/s", delay="20ms", loss="1%"), "200kB", seed=1)
    >>> 0 < trial.goodput_bps < 10e6
    True
    """
    if (size is None) == (workload is None):
        raise ValueError('set either size (e.g. "2MB") or workload')
    network = topology if path is None else path
    if network is None or (path is not None and topology is not None):
        raise ValueError("set either path or topology")
    several = topology is not None or isinstance(path, Topology)
    listed = [traffic] if isinstance(traffic, Mapping) else traffic
    flows = [_table(traffic_table(plain(flow, "traffic")), "traffic") for flow in listed]
    spec: dict[str, Any] = {
        "topology" if several else "path": _table(network, "topology" if several else "path"),
        "protocol": _protocol(protocol),
        "workload": _table({"kind": "file", "size": size} if workload is None else workload, "workload"),
    }
    for section, settings in spec.items():
        _refuse(section, settings)  # type: ignore[arg-type]
    for flow in flows:
        _refuse("traffic", flow)
    if flows:
        spec["traffic"] = flows
    spec |= {"seed": _number(seed, "seed"), "trial": _number(trial, "trial")}
    content = json.loads(_native.simulate(canonical(spec)))
    if content["metrics"] is None:
        raise TransferError(content["error"])
    values = {name: value for name, value in content["metrics"].items() if value is not None}
    return Trial(values, spec, content.get("flows") or [])


def _protocol(given: Any) -> dict[str, Any]:
    """Returns the keys of a protocol, without its name in a study."""
    table = protocol_table(plain(given, "protocol"))
    if isinstance(table, dict):
        table.pop("name", None)
    return _table(table, "protocol")


def _number(given: Any, name: str) -> int:
    """Returns a seed or the number of a trial as an `int`."""
    number = plain(given, name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise StudyError("", [Problem(name, f"{show(number)}: must be a whole number")])
    if not 0 <= number < 2**64:
        raise StudyError("", [Problem(name, f"{number} is out of range: 0 to 2^64 - 1")])
    return number


def _table(given: Any, section: Section) -> dict[str, Any]:
    """Returns the settings of a section as plain data."""
    table = plain(given, section)
    if not isinstance(table, dict):
        made = {"path": "Path", "topology": "Topology", "protocol": "Protocol"}.get(section)
        hint = f" or an object such as longfat.{made}" if made else ""
        raise StudyError("", [Problem(section, f"{show(table)}: must be a dict{hint}")])
    return dict(table)


def _refuse(section: Section, settings: dict[str, Any]) -> None:
    found = [Problem(key, message) for key, message in check(section, settings)]
    if found:
        raise StudyError("", found)


def run(
    study: str | _File | Mapping[str, Any] | Study,
    *,
    worlds: Sequence[str] = (),
    repeats: SupportsIndex | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: SupportsIndex | None = None,
    jobs: int | None = None,
    out: str | _File | None = None,
    quick: bool = False,
    fresh: bool = False,
    progress: bool = False,
    force: bool = False,
) -> RunResult:
    """Runs the trials of a study that have no record yet, and returns the result of all.

    Args:
        study: A study file's path, a built-in study's name ("arq/loss"), its tables as a dict, or a `Study`.
            A dict may contain objects (`Path`, `Tcp`), dicts, NumPy values and controller classes. An entry
            of its protocols may be a name or a class ("cubic"), as in `simulate`.
        worlds: Worlds to run in, instead of the study's.
        repeats: Trials of each cell.
        settings: Keys to change, as `--set` does: `{"path.loss": "2%"}`; a list becomes a sweep.
        seed: Random seed.
        jobs: Number of parallel trials; by default one per core.
        out: Folder of the run; by default `runs/` and the study's name.
        quick: Runs fewer cells and shorter trials, for an answer within half a minute; `study.cuts` of the
            result lists the differences.
        fresh: Removes this study's records first.
        progress: Shows the progress on standard error.
        force: Also runs trials above this machine's capacity, in worlds in wall time.

    Returns:
        Cells with intervals and claims with verdicts. `to_polars()` has one row for each trial,
        `flows_to_polars()` one for each flow, both with plain names and SI numbers.

    Raises:
        ValueError: with file, key, value and what is allowed; also for the folder of another study.
        OSError: if the folder is not writable.
        KeyboardInterrupt: after the finished records were written; another run resumes.
    """
    from longfat.analysis.expectation import theory_problems
    from longfat.presentation.report import write_report
    from longfat.progress import display
    from longfat.runner import run_study
    from longfat.runner.progress import Reporter

    overrides = Overrides(
        tuple(plain(settings or {}).items()),
        tuple(plain([worlds] if isinstance(worlds, str) else worlds)),
        plain(repeats),
        plain(seed),
        quick,
        label="settings",
    )
    result = run_study(
        load_study(study, overrides, also=theory_problems),
        folder=None if out is None else _File(out),
        jobs=jobs,
        fresh=fresh,
        quick=quick,
        reporter=Reporter(display()) if progress else None,
        force=force,
    )
    write_report(result)
    return result
