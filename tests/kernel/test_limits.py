"""The time in which buffers limit TCP: the simulator's count and that of Linux's TCP_INFO."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.waiting import undisturbed

import longfat as lf
from longfat.analysis.limits import share
from longfat.results.run import CellResult

LEAST_SHARE = 0.2
BUFFERS = {"small": "300kB", "large": "20MB"}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("send", "receive", "limit"),
    [
        ("large", "small", "rwnd_limited_s"),
        ("small", "large", "sndbuf_limited_s"),
        ("large", "large", None),
    ],
)
@pytest.mark.slow
def test_both_worlds_find_the_same_limit(send: str, receive: str, limit: str | None, tmp_path: Path) -> None:
    keys = {"send_buffer": BUFFERS[send], "receive_buffer": BUFFERS[receive]}
    study = {
        "title": "Buffers in two worlds",
        "worlds": ["sim", "netns"],
        "repeats": 1,
        "path": {"rate": "100Mbit/s", "delay": "25ms", "queue": "600pkt"},
        "workload": {"kind": "bulk", "duration": "4s", "warm_up": "2s"},
        "protocols": [{"name": "cubic", "kind": "tcp", "congestion": "cubic", **keys}],
    }
    numbers = itertools.count()

    def measure() -> list[CellResult]:
        return lf.run(study, out=tmp_path / f"run{next(numbers)}").cells

    def is_right(cells: list[CellResult]) -> bool:
        return limit != "sndbuf_limited_s" or share(cells[1], limit) > LEAST_SHARE

    cells = undisturbed(measure, is_right)
    assert [cell.cell.world for cell in cells] == ["sim", "netns"]
    for metric in ("rwnd_limited_s", "sndbuf_limited_s"):
        simulated, measured = (share(cell, metric) for cell in cells)
        if metric != limit:
            assert simulated < 0.05
            assert measured < 0.05
        elif metric == "rwnd_limited_s":
            assert simulated == pytest.approx(measured, abs=0.05)
            assert simulated > 0.9
        else:
            # Linux does not count a write after which nothing is left to push (tcp_push), and counts less.
            assert LEAST_SHARE < measured <= simulated
