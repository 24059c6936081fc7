"""Five tasks from import to chart, each within a maximum number of lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import requirements

from longfat import _native

TASKS = {
    "sweep_with_error_bars": 6,
    "windows_overlaid": 4,
    "completion_times": 12,
    "own_controller": 20,
    "measured_path": 5,
}
FOLDER = Path(__file__).parent / "tasks"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), TASKS.items())
def test_a_task_fits_its_lines_and_draws(name: str, limit: int, tmp_path: Path) -> None:
    file = FOLDER / f"{name}.py"
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= limit
    if name == "measured_path" and not _has_raw_sockets():
        requirements.skip("raw", "probes need raw sockets")
    done = subprocess.run(
        [sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "vega" in (tmp_path / "picture.html").read_text(encoding="utf-8")


def _has_raw_sockets() -> bool:
    return any(probe["name"] == "echo requests" and probe["ok"] for probe in json.loads(_native.doctor()))
