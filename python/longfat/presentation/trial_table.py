"""The main metrics of a single trial as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.grid import SHOWN_BY_WORKLOAD
from longfat.presentation import names
from longfat.presentation.formatting import quantity
from longfat.study.vocabulary import metrics


def rows(spec: Mapping[str, Any], measured: Mapping[str, float]) -> list[list[str]]:
    """Returns a row for each metric that a report shows for this workload: its title, and value with unit."""
    kind = str(spec["workload"].get("kind"))
    shown = SHOWN_BY_WORKLOAD.get(kind, SHOWN_BY_WORKLOAD["file"])
    unit = {name: str(about["unit"]) for name, about in metrics().items()}
    return [
        [names.metric_title(name), quantity(measured[name], unit.get(name, ""))]
        for name in shown
        if name in measured
    ]
