"""qlog files that `longfat explore` shows."""

from __future__ import annotations

from pathlib import Path

_SUFFIXES = (".qlog", ".sqlog")
_MAYBE = ".json"
"""Files with this suffix are logs if their content is."""
_MARKS = (b'"qlog_version"', b'"file_schema"')
"""Fields of the header; each qlog file has one of them."""
_SEARCHED = 1 << 16
"""The header is this near to the start or, in JSON with another order, to the end."""


def log_file(argument: str) -> Path | None:
    """Returns the qlog file that an argument names, or None if it names something else.

    Raises:
        ValueError: for a file with a suffix of logs that is missing, a folder, empty, or not qlog.
    """
    path = Path(argument)
    suffix = path.suffix.lower()
    if suffix == _MAYBE:
        return path if path.is_file() and _is_qlog(path) else None
    if suffix not in _SUFFIXES:
        return None
    if path.is_dir():
        raise ValueError(f"{argument}: is a folder, not a qlog file")
    try:
        found = _is_qlog(path)
    except OSError as error:
        raise ValueError(f"cannot read {argument}: {error.strerror}") from error
    if not found:
        empty = path.stat().st_size == 0
        reason = "it is empty" if empty else "its header has neither qlog_version nor file_schema"
        raise ValueError(f"{argument}: not a qlog file: {reason}")
    return path


def _is_qlog(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_SEARCHED)
        file.seek(max(0, path.stat().st_size - _SEARCHED))
        end = file.read()
    return any(mark in part for mark in _MARKS for part in (start, end))
