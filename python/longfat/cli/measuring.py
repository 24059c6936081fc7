"""Parts that the measuring commands (ping, transact, path, echo) share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from longfat.progress import Display
    from longfat.results import Interval

ECHO_PORT = 9007
"""The default port of `longfat echo`."""


def ip_version(four: bool, six: bool) -> int | None:
    """Returns the requested version of IP, None for any. Raises ValueError for both options."""
    if four and six:
        raise ValueError("-4 and -6 exclude each other")
    return 4 if four else 6 if six else None


def shower(display: Display, line: Callable[[Mapping[str, Any]], str]) -> Callable[[str], None]:
    """Returns a function that shows the native part's progress reports, each as the text of `line`."""
    return lambda report: display.show("", line(json.loads(report)))


def with_bounds(estimate: Interval, scale: float) -> str:
    """Returns an estimate with its interval, in multiples of `scale`; unknown bounds are "?"."""
    from longfat.presentation.formatting import DASH, digits

    if not math.isfinite(estimate.value):
        return DASH
    low, high = (digits(v / scale) if math.isfinite(v) else "?" for v in (estimate.low, estimate.high))
    return f"{digits(estimate.value / scale)} [{low}, {high}]"


def chart_points(estimates: Sequence[tuple[str, int, Interval]]) -> list[dict[str, Any]]:
    """Returns the points of a chart by size, in ms, of (series, size in bytes, estimate in s)."""
    return [
        {
            "series": series,
            "size": size,
            "ms": one.value * 1e3,
            "low": one.low * 1e3 if math.isfinite(one.low) else None,
            "high": one.high * 1e3 if math.isfinite(one.high) else None,
        }
        for series, size, one in estimates
        if math.isfinite(one.value)
    ]


def write_samples(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes all samples as Parquet or CSV, by the file's suffix."""
    import io

    import polars as pl

    from longfat.files import write_whole

    frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    content = io.BytesIO()
    if target.suffix == ".parquet":
        frame.write_parquet(content)
    else:
        frame.write_csv(content)
    write_whole(target, content.getvalue())


def finish(*, interrupted: bool, measured: bool) -> None:
    """Exits with an error code after Ctrl-C, or if nothing was measured."""
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR

    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not measured:
        raise typer.Exit(SYSTEM_ERROR)
