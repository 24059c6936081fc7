"""From records to answers: intervals, verdicts, theory, tables, charts and the report.

Everything is imported on first use, so that the command line starts without numpy, polars and altair.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.analysis.claims import evaluate_claims
    from longfat.analysis.report import write_report
    from longfat.analysis.statistics import summarise
    from longfat.analysis.terminal import table

__all__ = ["evaluate_claims", "summarise", "table", "write_report"]

_HOMES = {
    "evaluate_claims": "claims",
    "summarise": "statistics",
    "table": "terminal",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
