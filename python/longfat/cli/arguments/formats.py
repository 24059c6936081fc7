"""The format of a file that a command writes: by its name, or as it is asked for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TypeVar

Format = TypeVar("Format", bound=StrEnum)
_OTHER_NAMES = {"htm": "html", "txt": "text"}


def format_of(out: Path | None, asked: Format | None, default: Format) -> Format:
    """What `--out` and `--format` say; the default where neither is given.

    Raises ValueError where they contradict each other, or a name says nothing.

    >>> class Drawing(StrEnum):
    ...     SVG = "svg"
    ...     TEXT = "text"
    >>> format_of(Path("x.txt"), None, Drawing.SVG).value, format_of(None, None, Drawing.SVG).value
    ('text', 'svg')
    """
    known = [one.value for one in type(default)]
    suffix = out.suffix.removeprefix(".").lower() if out is not None else ""
    named = _OTHER_NAMES.get(suffix, suffix)
    if asked is not None:
        if named in known and named != asked.value:
            raise ValueError(f"--out {out}: its name says {named}, --format says {asked.value}")
        return asked
    if named in known:
        return type(default)(named)
    if out is not None:
        raise ValueError(f"--out {out}: its name says no format; allowed: {', '.join(known)} (or --format)")
    return default
