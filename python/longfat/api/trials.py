"""`simulate`: one trial in virtual time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat import _native
from longfat.api.specification import specification
from longfat.study.tables import GoBackN as GoBackN  # noqa: PLC0414 - for the example
from longfat.study.tables import Path, Protocol, Topology
from longfat.study.vocabulary import canonical, short_metric

if TYPE_CHECKING:
    import polars

    from longfat.extensions.controller import CongestionController
    from longfat.presentation.displayed import TextTable


class TransferError(RuntimeError):
    """A failed transfer. The text is the reason."""


@dataclass(frozen=True, repr=False)
class Trial:
    """The result of one trial.

    `metrics` maps each metric's name with its unit (`goodput_bps`) to its value. Each metric is also an
    attribute, with or without its unit (`trial.goodput_bps`, `trial.goodput`). The metric of one host has the
    host's name after an @ (`goodput_bps@s1`). `flows_to_polars()` returns the flows.
    """

    metrics: dict[str, float]
    spec: dict[str, Any]
    columns: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The flows as columns from the native part, for `longfat.system.flow_table`."""

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The flows as dicts, in the order of their starts; `path_bytes` is a list here."""
        from longfat.system.flow_table import flow_table

        return flow_table(self.columns).to_dicts()

    def flows_to_polars(self) -> polars.DataFrame:
        """Returns one row for each flow, in the order of their starts, with the columns of a run's flows."""
        from longfat.results.frames import flows_frame
        from longfat.system.flow_table import flow_table

        return flows_frame(flow_table(self.columns))

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.table().lines()])

    @property
    def title(self) -> str:
        """Protocol, trial and seed, as one line."""
        from longfat.presentation import names

        about = f"trial {self.spec['trial']}, seed {self.spec['seed']}"
        return f"{names.protocol_of(self.spec['protocol'])}: {about}"

    def table(self) -> TextTable:
        """Returns the main metrics with their units."""
        from longfat.presentation.displayed import TextTable
        from longfat.presentation.run.trial import rows

        return TextTable(("metric", "value"), rows(self.spec, self.metrics), right=(1,))

    def to_polars(self) -> polars.DataFrame:
        """Returns one row with the trial's metrics, in SI units."""
        import polars as pl

        from longfat.results.frames import plain_name

        return pl.DataFrame({plain_name(name): [value] for name, value in self.metrics.items()})

    def _repr_html_(self) -> str:
        from longfat.presentation.html.markup import render, tag

        return render([tag("b", self.title), self.table().html()])

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
    duration: str | None = None,
    links: Sequence[str] = (),
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
        duration: Instead of a size, the duration of a bulk transfer ("20s"), a workload of kind "bulk".
        links: Names of links with metrics of their own: "reverse" adds `drops@reverse` and others.
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
    spec = specification(
        protocol,
        path,
        size,
        topology=topology,
        traffic=traffic,
        workload=workload,
        duration=duration,
        links=links,
        seed=seed,
        trial=trial,
    )
    return trial_of(json.loads(_native.simulate(canonical(spec))), spec)


def trial_of(record: Mapping[str, Any], spec: dict[str, Any]) -> Trial:
    """Returns the trial of a native record. Raises TransferError for a failed transfer."""
    if record["metrics"] is None:
        raise TransferError(record["error"])
    values = {name: value for name, value in record["metrics"].items() if value is not None}
    return Trial(values, spec, record.get("flows") or [])
