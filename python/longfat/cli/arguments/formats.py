"""The format of an output file: from its name, or from --format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_SYNONYMS = {"htm": "html", "txt": "text"}


def format_of(out: Path | None, requested: str | None, known: Sequence[str], default: str) -> str:
    """Returns the format of `--format`, else that of the name in `--out`, else the default.

    Raises ValueError if the two contradict each other, or if the name has no known suffix.

    >>> format_of(Path("x.txt"), None, ("svg", "text"), "svg"), format_of(None, None, ("svg", "text"), "svg")
    ('text', 'svg')
    """
    suffix = out.suffix.removeprefix(".").lower() if out is not None else ""
    named = _SYNONYMS.get(suffix, suffix)
    if requested is not None:
        if named in known and named != requested:
            raise ValueError(f"--format {requested} contradicts --out {out}")
        return requested
    if out is not None and named not in known:
        raise ValueError(f"--out {out}: unknown suffix; allowed: {', '.join(known)} (or set --format)")
    return named or default


def require_folder(option: str, target: Path | None) -> None:
    """Raises ValueError, before anything is measured, if the folder of a file does not exist."""
    if target is not None and not target.parent.is_dir():
        raise ValueError(f"{option} {target}: the folder {target.parent} does not exist; create it")
    if target is not None and target.is_dir():
        raise ValueError(f"{option} {target}: is a folder; add the name of a file")


def require_suffix(option: str, target: Path | None, *allowed: str) -> None:
    """Raises ValueError, before anything is measured, if a file's name has none of the allowed suffixes.

    The same as `require_folder` for its folder.
    """
    if target is not None and target.suffix not in allowed:
        raise ValueError(f"{option} {target}: unknown suffix; allowed: {', '.join(allowed)}")
    require_folder(option, target)
