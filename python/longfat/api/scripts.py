"""`packetdrill`: conformance scripts against longfat's TCP, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.presentation.displayed import Displayed, TextTable

if TYPE_CHECKING:
    import polars

OUTCOMES = {"pass": "passed", "fail": "failed", "unsupported": "unsupported", "invalid": "invalid"}
"""Outcomes of a script, and their names in totals."""


@dataclass(frozen=True, repr=False)
class ScriptResults(Displayed):
    """Outcomes of packetdrill scripts: each report has `path`, `outcome`, and where and why it failed."""

    reports: tuple[dict[str, Any], ...]

    @property
    def counts(self) -> Counter[str]:
        """Number of scripts by outcome: pass, fail, unsupported, invalid."""
        return Counter(report["outcome"] for report in self.reports)

    @property
    def is_passed(self) -> bool:
        """Whether no script failed or was invalid."""
        return not (self.counts["fail"] or self.counts["invalid"])

    @property
    def title(self) -> str:
        """The totals."""
        return total(self.counts)

    def table(self) -> TextTable:
        """Returns a row for each script that did not pass."""
        rows = [line_of(report).partition(" ") for report in self.reports if report["outcome"] != "pass"]
        return TextTable(("outcome", "script"), [[outcome, rest] for outcome, _, rest in rows])

    def markdown(self, folder: str | Path = ".", *, passed: bool = False) -> str:
        """Returns a Markdown table with a row per script: its path in `folder`, result and reason.

        Args:
            folder: The folder that the paths start at.
            passed: Include the scripts that passed.
        """
        from longfat.presentation.run.summary import markdown_table

        base = Path(folder).absolute()
        rows = []
        for report in self.reports:
            if passed or report["outcome"] != "pass":
                path = Path(report["path"])
                inside = path.absolute().is_relative_to(base)
                name = path.absolute().relative_to(base) if inside else path
                rows.append([name.as_posix(), report["outcome"], reason_of(report)])
        return "\n".join(markdown_table(["script", "result", "reason"], rows))

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each script."""
        import polars as pl

        keys = ("path", "outcome", "line", "expected", "seen", "at_s", "what")
        return pl.DataFrame([{key: report.get(key) for key in keys} for report in self.reports])


def line_of(report: dict[str, Any]) -> str:
    """Returns the outcome of a script as one line."""
    path = report["path"]
    if report["outcome"] == "pass":
        return f"pass {path}"
    place = f"{path}:{report['line']}"
    if report["outcome"] == "fail":
        return f"FAIL {place} expected {report['expected']}, seen {report['seen']} [{report['at_s']:.6f}s]"
    outcome = "unsupported" if report["outcome"] == "unsupported" else "INVALID"
    return f"{outcome} {place} {report['what']}"


def reason_of(report: dict[str, Any]) -> str:
    """Returns why a script did not pass, with its line; empty if it passed."""
    if report["outcome"] == "pass":
        return ""
    if report["outcome"] == "fail":
        return f"line {report['line']}: expected {report['expected']}, seen {report['seen']}"
    return f"line {report['line']}: {report['what']}"


def total(counts: Counter[str]) -> str:
    """Returns the number of scripts by outcome as one line.

    >>> total(Counter({"pass": 3, "fail": 1}))
    '3 passed, 1 failed of 4'
    """
    named = [f"{counts[outcome]} {name}" for outcome, name in OUTCOMES.items() if counts[outcome]]
    return f"{', '.join(named)} of {counts.total()}"


def packetdrill(scripts: str | Path | Sequence[str | Path]) -> ScriptResults:
    """Runs packetdrill scripts against longfat's TCP.

    Args:
        scripts: Scripts, or folders with `*.pkt` files.

    Returns:
        The outcome of each script.

    Raises:
        OSError: for a script that cannot be read.
        ValueError: if there are no scripts.
    """
    return ScriptResults(tuple(results(scripts)))


def results(scripts: str | Path | Sequence[str | Path]) -> Iterator[dict[str, Any]]:
    """Yields the outcome of each script when it ends, with the arguments and errors of `packetdrill`."""
    from longfat import _native
    from longfat.api.snippets import Snippets

    listed = [Path(one) for one in ([scripts] if isinstance(scripts, str | Path) else scripts)]
    for path in listed:
        path.stat()
    found = [
        script for path in listed for script in (sorted(path.rglob("*.pkt")) if path.is_dir() else [path])
    ]
    if not found:
        raise ValueError("no *.pkt files found")
    for script in found:
        yield from json.loads(_native.packetdrill([str(script)], Snippets))
