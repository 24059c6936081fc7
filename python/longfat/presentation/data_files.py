"""Data frames as files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

FORMATS = ("parquet", "csv", "json")


def encoded(frame: polars.DataFrame, kind: str) -> bytes:
    """Returns a frame as the bytes of a file of a kind: "parquet", "csv", or "json" (a list of rows)."""
    content = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(content)
    elif kind == "json":
        frame.write_json(content)
        content.write(b"\n")
    else:
        frame.write_csv(content)
    return content.getvalue()
