"""The flows of trials as a table, from the columns of the native part."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

Column = Mapping[str, Any]
"""One column of a record's `flows`: it has `name`, `dtype` (NumPy's) and `values`, as bytes or in base64.

Optional keys: `present` (one byte per row, 0 for a missing value), `words` (the texts that `values` number)
and `lengths` (the number of `values` in each row).
"""

Numbers = np.ndarray[Any, np.dtype[Any]]


def flow_table(*trials: Sequence[Column]) -> pl.DataFrame:
    """Returns one row for each flow, trial by trial, without converting single rows.

    >>> flow = {"name": "flow", "dtype": "<i8", "values": "AAAAAAAAAAABAAAAAAAAAA=="}
    >>> to = {"name": "to", "dtype": "<u4", "values": "AAAAAAAAAAA=", "words": ["b"]}
    >>> flow_table([flow, to]).rows()
    [(0, 'b'), (1, 'b')]
    """
    return pl.DataFrame([_series(parts) for parts in zip(*trials, strict=True)])


def height(trial: Sequence[Column]) -> int:
    """Returns the number of flows of a trial."""
    return len(_numbers(trial[0]["values"], trial[0]["dtype"])) if trial else 0


def _series(parts: Sequence[Column]) -> pl.Series:
    """Returns the same column of several trials as one."""
    name = parts[0]["name"]
    pieces = [_numbers(part["values"], part["dtype"]) for part in parts]
    texts: list[str] = []
    if "words" in parts[0]:
        for place, part in enumerate(parts):
            pieces[place] = pieces[place] + np.uint32(len(texts))
            texts += part["words"]
    values = pl.Series(name, np.concatenate(pieces))
    # Integers arrive as narrow unsigned types; signed ones give correct differences.
    values = values if values.dtype.is_float() else values.cast(pl.Int64)
    if "lengths" in parts[0]:
        values = _lists(values, np.concatenate([_numbers(part["lengths"], "<u4") for part in parts]))
    if any("present" in part for part in parts):
        there = [
            _numbers(part["present"], "u1") if "present" in part else np.ones(len(piece), "u1")
            for part, piece in zip(parts, pieces, strict=True)
        ]
        values = values.set(pl.Series(np.concatenate(there) == 0), None)
    return pl.Series(name, texts, dtype=pl.String).gather(values) if "words" in parts[0] else values


def _numbers(content: bytes | str, dtype: str) -> Numbers:
    return np.frombuffer(content if isinstance(content, bytes) else b64decode(content), dtype)


def _lists(values: pl.Series, lengths: Numbers) -> pl.Series:
    """Returns the values cut into lists of these lengths, by way of rows of the greatest length."""
    width = int(lengths.max(initial=0))
    rows = np.zeros((len(lengths), width), values.to_numpy().dtype)
    rows[np.arange(width) < lengths[:, None]] = values.to_numpy()
    frame = pl.DataFrame([pl.Series(values.name, rows), pl.Series("length", lengths)])
    return frame.select(pl.col(values.name).cast(pl.List(values.dtype)).list.head("length")).to_series()
