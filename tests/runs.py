"""Runs of studies with their verdicts, for tests."""

from __future__ import annotations

from typing import Any

from longfat import runner
from longfat.api.runs import run_of
from longfat.presentation.run.displayed import Run
from longfat.study import Study


def run_study(study: Study, **options: Any) -> Run:
    """Returns the result of `longfat.runner.run_study` with verdicts."""
    return run_of(runner.run_study(study, **options))
