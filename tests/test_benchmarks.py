"""Benchmarks of the cluster and the store run, with few trials."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FIGURES = {
    "cluster.py overhead scaling tasks memory --share 0.02": [
        r"overhead, 2 workers, trials of .* \(-?\d+ µs per trial\)",
        r"400 trials: .* two workers [\d.]+ s",
        r"two workers are [\d.]+ times as fast",
        r"tasks: \d+ per second",
        r"20,000 trials that do nothing: \d+ MiB of client and scheduler",
    ],
    "many_workers.py --workers 6 --trials 400 --sleep 0.002": [
        r"6 workers registered after \d+ s",
        r"400 trials of 0\.002 s: [\d.]+ s",
        r"scheduler: [\d.]+ s of processor time",
    ],
    "store.py --trials 1000": [
        r"group-by in DuckDB: [\d.]+ s",
        r"[\d.]+ B per trial and metric in \d+ parts",
    ],
    "analysis.py --trials 10 --cells 5": [r"longfat chart: [\d.]+ s of CPU time"],
}
"""The printed figures of each command."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: HTSIM_DIR"),
        ((".",), "not a checkout of csg-htsim"),
        ((".", "--rounds", "0"), "--rounds: at least 1"),
    ],
)
def test_the_comparison_with_htsim_reports_errors_in_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "compare_htsim.py", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", FIGURES)
def test_a_benchmark_prints_its_figures(command: str, tmp_path: Path) -> None:
    name, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, BENCHMARKS / name, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for figure in FIGURES[command]:
        assert re.search(rf"^{figure}", done.stdout, re.MULTILINE), f"{figure}\n{done.stdout}"
