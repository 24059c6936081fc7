"""Data frames for other programs: plain column names, SI numbers, and no column that CSV cannot hold.

    path.loss = "1%"    becomes    path_loss = 0.01 and path_loss_label = "1%"

Times are in s, rates in bit/s, sizes in B, proportions and probabilities between 0 and 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from longfat.study import units

if TYPE_CHECKING:
    from longfat.results.run import RunResult

LABEL = "_label"
"""The end of the name of a column with a swept key's values as the study writes them."""


def plain_name(name: str) -> str:
    """Returns a column's name with underscores in place of all but letters and digits.

    >>> plain_name("path.loss"), plain_name("protocols.sr.window"), plain_name("goodput_bps@s1")
    ('path_loss', 'protocols_sr_window', 'goodput_bps_s1')
    """
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def stored(value: Any) -> str | None:
    """Returns the text of a swept value in records."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def si(values: Iterable[Any]) -> list[float | int | bool] | None:
    """Returns swept values as numbers in base units; None where they have no unit in common.

    Whole numbers and booleans stay what they are.

    >>> si(["1%", "10%"]), si(["20ms", "1s"]), si([4, 8]), si(["10pkt", "10kB"]), si([4, "auto"])
    ([0.01, 0.1], [0.02, 1.0], [4, 8], None, None)
    """
    values = list(values)
    if values and all(isinstance(value, bool) for value in values):
        return values
    try:
        read = [units.parse(value) for value in values]
    except ValueError:
        return None
    if len({quantity.dimension for quantity in read}) > 1:
        return None
    if all(isinstance(value, int) for value in values):
        return values
    return [float(quantity.value) for quantity in read]


class Points:
    """Points of a sweep under plain names: numbers in base units, else labels.

    `swept` has all values of each key: a key is a number where all of its values are.

    >>> points = Points({"path.loss": ["1%"], "path.queue": ["codel"]})
    >>> points.plain({"path.loss": "1%", "path.queue": "codel"})
    {'path_loss': 0.01, 'path_queue': 'codel'}
    """

    def __init__(self, swept: Mapping[str, Sequence[Any]]) -> None:
        self._values = {key: _plain_values(list(listed)) for key, listed in swept.items()}

    def plain(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a point under plain names."""
        return {plain_name(key): self._values[key][stored(value)] for key, value in params.items()}


def _plain_values(listed: Sequence[Any]) -> dict[str | None, Any]:
    numbers = si(listed)
    shown = [_label(value) for value in listed] if numbers is None else numbers
    return dict(zip(map(stored, listed), shown, strict=True))


def trials_frame(run: RunResult, records: pl.DataFrame) -> pl.DataFrame:
    """Returns one row a trial: its place in the study, the swept keys, `measured`, `error` and the metrics.

    `measured` is false for a trial that failed: it has no metrics, and its `error` gives the reason.
    """
    frame = records.drop("cell").with_columns(measured=pl.col("error").is_null())
    frame = frame.select(*_moved(frame.columns, "measured", before="error"))
    return _plain(frame, run)


def flows_frame(frame: pl.DataFrame, run: RunResult | None = None) -> pl.DataFrame:
    """Returns one row a flow; with a run, columns that identify its trial come first.

    `measured` is false for a flow of the traffic, which no metric of the workload counts. The bytes on each
    path are in `path_bytes_1`, `path_bytes_2` and so on, null where a flow has fewer paths.
    """
    frame = _unnested(frame)
    if "traffic" in frame.columns:
        frame = frame.with_columns(measured=pl.col("traffic").is_null())
        frame = frame.select(*_moved(frame.columns, "measured", before="traffic"))
    return frame if run is None else _plain(frame, run)


def _moved(names: Sequence[str], name: str, *, before: str) -> list[str]:
    others = [other for other in names if other != name]
    at = others.index(before)
    return [*others[:at], name, *others[at:]]


def _unnested(frame: pl.DataFrame) -> pl.DataFrame:
    """Each column of lists as a column for each place in them, numbered from 1."""
    columns: list[pl.Expr] = []
    for name, of in frame.schema.items():
        if not isinstance(of, pl.List):
            columns.append(pl.col(name))
            continue
        longest = frame[name].list.len().max()
        columns += [
            pl.col(name).list.get(place, null_on_oob=True).alias(f"{name}_{place + 1}")
            for place in range(int(longest) if isinstance(longest, int) else 0)
        ]
    return frame.select(columns)


def _plain(frame: pl.DataFrame, run: RunResult) -> pl.DataFrame:
    """Plain names, and a number and a label for each swept key."""
    swept = run.swept
    columns: list[pl.Expr] = []
    labels: list[pl.Expr] = []
    taken: set[str] = set()

    def named(name: str) -> str:
        name = plain_name(name)
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    for name in frame.columns:
        listed = list(swept.get(name, ()))
        texts = [stored(value) for value in listed]
        if not listed or name not in swept:
            columns.append(pl.col(name).alias(named(name)))
            continue
        numbers, shown = si(listed), [_label(value) for value in listed]
        own = named(name)
        label = pl.col(name).replace_strict(texts, shown, default=None, return_dtype=pl.String)
        if numbers is None:
            columns.append(label.alias(own))
            continue
        of = _type(numbers)
        columns.append(pl.col(name).replace_strict(texts, numbers, default=None, return_dtype=of).alias(own))
        labels.append(label.alias(named(f"{own}{LABEL}")))
    if of_protocols := run.study.labels:
        shown_name = pl.col("protocol").replace(of_protocols).alias(named(f"protocol{LABEL}"))
        labels.insert(0, shown_name)
    # Behind all that there is to compute with, so that nobody charts the text by mistake.
    return frame.select(*columns, *labels)


def _type(numbers: Sequence[Any]) -> type[pl.DataType]:
    if isinstance(numbers[0], bool):
        return pl.Boolean
    return pl.Int64 if isinstance(numbers[0], int) else pl.Float64


def _label(value: Any) -> str:
    from longfat.study.labels import label

    return label(value)
