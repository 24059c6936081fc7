"""The main metrics of a single trial as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.grid import SHOWN_BY_WORKLOAD
from longfat.presentation import names
from longfat.presentation.formatting import DASH, quantity
from longfat.study.vocabulary import metrics


def rows(spec: Mapping[str, Any], measured: Mapping[str, float]) -> list[list[str]]:
    """Returns a row for each metric that a report shows for this workload: its title, and value with unit.

    A value that unanswered requests or incomplete flows make unknown is a dash, and a row counts these.
    """
    kind = str(spec["workload"].get("kind"))
    shown = SHOWN_BY_WORKLOAD.get(kind, SHOWN_BY_WORKLOAD["file"])
    unit = {name: str(about["unit"]) for name, about in metrics().items()}
    counts = {name: _beyond(name, measured) for name in shown}
    listed = [*shown, *dict.fromkeys(count for name in shown for count in counts[name])]
    return [
        [names.metric_title(name), quantity(measured[name], unit.get(name, "")) if name in measured else DASH]
        for name in listed
        if name in measured or counts.get(name)
    ]


def _beyond(metric: str, measured: Mapping[str, float]) -> list[str]:
    """The counts of times without an end that make a missing metric unknown."""
    declared = metrics().get(metric, {}).get("censoring")
    if declared is None or metric in measured:
        return []
    if declared["recorded"] is not None and declared["recorded"] not in measured:
        return []
    return [count for count in declared["beyond"] if measured.get(count, 0) > 0]
