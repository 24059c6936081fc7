"""Columns of the charts: the bytes that arrive are counted once and completely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.bundled import run

INTERVAL_S = 0.01
MBITS = 1000 * 8 / INTERVAL_S / 1e6
"""One packet of 1000 bytes per sample, in Mbit/s."""


def arrival(time: float) -> dict[str, Any]:
    return {"time": time, "flow": 0, "what": "receive", "length": 1000, "direction": "forward"}


def series(first: int, last: int) -> dict[str, Any]:
    times = [round(place * INTERVAL_S, 9) for place in range(first, last + 1)]
    empty = [None] * len(times)
    flow = dict.fromkeys(("cwnd_bytes", "ssthresh_bytes", "srtt_s", "in_flight_bytes"), empty)
    return {"flows": [{"flow": 0, "time": times, "goodput_bps": [0.0] * len(times), **flow}], "queues": []}


def received(tmp_path: Path, *steps: tuple[list[dict[str, Any]], dict[str, Any], bool]) -> list[float | None]:
    code = (
        "const samples = new module.Samples({ main: 0, payloadOf: () => 1000 }, 0);\n"
        f"for (const step of {json.dumps(steps)}) samples.add(...step);\n"
        "console.log(JSON.stringify(samples.columns.received));"
    )
    found: list[float | None] = run(tmp_path, "columns", code)
    return found


def test_packets_after_the_last_sample_count_in_the_next_one(tmp_path: Path) -> None:
    # Both packets are of the interval that ends at 0.02 s; the first step ends within it.
    found = received(
        tmp_path,
        ([arrival(0.012)], series(0, 1), True),
        ([arrival(0.018)], series(2, 2), True),
    )
    assert found == pytest.approx([0, 0, 2 * MBITS / 3])


def test_the_steps_of_a_frame_do_not_change_the_sum(tmp_path: Path) -> None:
    times = [0.0017 * place for place in range(1, 180)]
    whole = [([arrival(time) for time in times], series(0, 31), True)]
    single, before = [], -1
    for time in times:
        now = int(time / INTERVAL_S + 1e-9)
        single.append(([arrival(time)], series(before + 1, now), True))
        before = now
    single.append(([], series(before + 1, 31), True))
    assert received(tmp_path, *single) == pytest.approx(received(tmp_path, *whole))


def test_arrivals_without_single_packets_are_unknown(tmp_path: Path) -> None:
    found = received(
        tmp_path,
        ([], series(0, 14), False),
        ([arrival(0.152), arrival(0.161)], series(15, 16), True),
    )
    assert found[:16] == [None] * 16
    assert found[16] == pytest.approx(MBITS)
