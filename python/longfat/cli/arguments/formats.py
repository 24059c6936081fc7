"""The format of an output file: from its name, or from --format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TypeVar

Format = TypeVar("Format", bound=StrEnum)
_SYNONYMS = {"htm": "html", "txt": "text"}


def format_of(out: Path | None, requested: Format | None, default: Format) -> Format:
    """Returns the format of `--format`, else that of the name in `--out`, else the default.

    Raises ValueError if the two contradict each other, or if the name has no known suffix.

    >>> class Drawing(StrEnum):
    ...     SVG = "svg"
    ...     TEXT = "text"
    >>> format_of(Path("x.txt"), None, Drawing.SVG).value, format_of(None, None, Drawing.SVG).value
    ('text', 'svg')
    """
    known = [one.value for one in type(default)]
    suffix = out.suffix.removeprefix(".").lower() if out is not None else ""
    named = _SYNONYMS.get(suffix, suffix)
    if requested is not None:
        if named in known and named != requested.value:
            raise ValueError(f"--format {requested.value} contradicts --out {out}")
        return requested
    if named in known:
        return type(default)(named)
    if out is not None:
        raise ValueError(f"--out {out}: unknown suffix; allowed: {', '.join(known)} (or set --format)")
    return default


def require_suffix(option: str, target: Path | None, *allowed: str) -> None:
    """Raises ValueError, before anything is measured, if a file's name has none of the allowed suffixes."""
    if target is not None and target.suffix not in allowed:
        raise ValueError(f"{option} {target}: unknown suffix; allowed: {', '.join(allowed)}")
