"""The world `netns`: studies on real kernels, where this system lets them be emulated.

They run whatever the machine holds: they ask for what must come of it even where it is late. What it refuses
is the business of test_capacity.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Data

from longfat.kernel.controllers import available
from longfat.runner import run_study
from longfat.runner.netns import controllers
from longfat.study import load_study

THRESHOLDS = """
title = "Vegas with few packets in the queue, and with many"
worlds = ["netns"]
repeats = 1
path = { rate = "10Mbit/s", delay = "10ms", queue = "100pkt" }
workload = { kind = "bulk", duration = "8s", warm_up = "4s" }
protocols = [
    { name = "few", kind = "tcp", congestion = "vegas" },
    { name = "many", kind = "tcp", congestion = { kind = "vegas", alpha = 20, beta = 24, gamma = 20 } },
]
"""


def _namespaces() -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add(str((process / "ns" / "net").readlink()))
        except OSError:  # it has ended, or is another's
            continue
    return found


@pytest.mark.usefixtures("emulated")
def test_a_study_runs_on_real_kernels_and_leaves_nothing(
    between_kernels: Callable[..., Data], write: Callable[[Data], Path], tmp_path: Path
) -> None:
    before = _namespaces()
    slow_start = {"name": "slow", "kind": "tcp", "initial_window": 2}
    file = write(between_kernels("500kB", slow_start))
    result = run_study(load_study(file), folder=tmp_path / "run", force=True)
    reno, slow = result.cells
    assert reno.n == 1
    # 500 kB at 20 Mbit/s take 0.2 s; slow start takes some round trips of 20 ms more.
    assert 0.2 < reno.metrics["completion_s"].mean < 5.0
    assert reno.metrics["rtt_mean_s"].mean > 0.02
    # What the kernel has no knob for is not passed over.
    assert slow.n == 0
    assert any("initial_window" in error for error in slow.failures)
    assert _namespaces() <= before


def test_the_controllers_of_all_flows_are_found() -> None:
    rival = {"name": "rival", "protocol": {"kind": "tcp", "congestion": "vegas"}, "workload": {}}
    cross = {"name": "cross", "protocol": {"kind": "udp"}, "workload": {}}
    spec = {"protocol": {"kind": "tcp", "congestion": {"kind": "bbr1"}}, "traffic": [rival, cross]}
    assert set(controllers(spec)) == {"bbr1", "vegas"}
    assert controllers({"protocol": {"kind": "go-back-n"}}) == {}


@pytest.mark.usefixtures("emulated")
def test_thresholds_of_vegas_reach_the_kernel(tmp_path: Path) -> None:
    if not (given := available("vegas", {"alpha": 20, "beta": 24}, source="bpf")).ok:
        pytest.skip(given.reason)
    file = tmp_path / "thresholds.toml"
    file.write_text(THRESHOLDS, encoding="utf-8")
    result = run_study(load_study(file), folder=tmp_path / "run", force=True)
    few, many = (cell.metrics["queue_mean_packets"].mean for cell in result.cells)
    # Two to four packets wait, and up to twenty-four: a busy machine's late wake-ups take some of them.
    assert few + 6 < many < 30
