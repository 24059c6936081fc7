"""Recorded rates that each trial starts at another time: equal seeds give equal bits, and intervals exist."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.runs import run_study

from longfat import _native
from longfat.presentation.run import notes
from longfat.study import StudyError, load_study
from longfat.study.vocabulary import canonical

PERIOD_MS = 20_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A recording whose rate changes every second, from 1 to 11 Mbit/s."""
    draw = random.Random(3)
    times: list[int] = []
    for second in range(PERIOD_MS // 1000):
        times += sorted(1000 * second + draw.randrange(1, 1001) for _ in range(draw.randrange(80, 900)))
    file = tmp_path / "mobile.trace"
    file.write_text("\n".join(map(str, [*times, PERIOD_MS])) + "\n")
    return file


def traced(trace: Path, **path: Any) -> dict[str, Any]:
    return {
        "title": "Recorded rate",
        "repeats": 6,
        "path": {"trace": str(trace), "delay": "10ms", "queue": "100pkt", **path},
        "workload": {"kind": "bulk", "duration": "3s"},
        "protocols": ["cubic", {"name": "bbr", "kind": "tcp", "congestion": "bbr"}],
        "show": ["goodput", "utilisation"],
    }


def records(data: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    return run_study(load_study(data), folder=folder, force=True).to_polars().to_dicts()


def test_a_random_start_gives_intervals(trace: Path, tmp_path: Path) -> None:
    fixed = run_study(load_study(traced(trace)), folder=tmp_path / "fixed")
    assert all(cell.deterministic for cell in fixed.cells)
    (hint,) = [line for line in notes.determinism(fixed.study, fixed.cells) if "trace_start" in line]
    assert (
        hint == 'to start each trial at a random time of its recorded rates, set path.trace_start = "random"'
    )
    varied = run_study(load_study(traced(trace, trace_start="random")), folder=tmp_path / "varied")
    assert not any(cell.deterministic for cell in varied.cells)
    assert not list(notes.determinism(varied.study, varied.cells))
    for cell in varied.cells:
        interval = cell.metrics["goodput_bps"]
        assert interval.low < interval.mean < interval.high


def test_the_same_seed_gives_the_same_bits(trace: Path, tmp_path: Path) -> None:
    data = traced(trace, trace_start="random")
    first = records(data, tmp_path / "a")
    assert records(data, tmp_path / "b") == first
    assert records({**data, "seed": 2}, tmp_path / "c") != first
    of_cubic = [row["goodput_bps"] for row in first if row["protocol"] == "cubic"]
    assert len(set(of_cubic)) == len(of_cubic) == 6


def simulated(path: dict[str, Any], trial: int) -> dict[str, float]:
    spec = {
        "path": path,
        "protocol": {"kind": "udp"},
        "workload": {"kind": "bulk", "rate": "20Mbit/s", "duration": "2s", "warm_up": "100ms"},
        "seed": 5,
        "trial": trial,
    }
    found: dict[str, float] = json.loads(_native.simulate(canonical(spec)))["metrics"]
    return found


def test_a_start_is_a_time_of_the_recording(trace: Path) -> None:
    """The rate after a start is that of the recording there; the utilisation refers to it."""
    times = [int(line) for line in trace.read_text().splitlines()]
    path = {"trace": str(trace), "delay": "0ms", "queue": "50pkt"}
    for start in (0, 3_000, 19_000, PERIOD_MS + 3_000):
        found = simulated({**path, "trace_start": f"{start}ms"}, 0)
        window = range(start + 100, start + 2_000)
        count = sum(time + turn * PERIOD_MS in window for time in times for turn in range(3))
        assert found["throughput_bps"] == pytest.approx(count * 1500 * 8 / 1.9, rel=0.02)
        assert found["utilisation"] == pytest.approx(1, abs=0.02)
    random_starts = {**path, "trace_start": "random"}
    found_rates = [simulated(random_starts, trial)["throughput_bps"] for trial in range(20)]
    assert len(set(found_rates)) == 20
    assert all(simulated(random_starts, trial)["utilisation"] > 0.98 for trial in range(20))


def test_other_random_streams_do_not_change(trace: Path) -> None:
    """A trace of a constant rate is the same from any time on, so that only other draws could differ."""
    trace.write_text("1\n2\n3\n4\n5\n")
    path = {"trace": str(trace), "delay": "10ms", "loss": "2%", "jitter": "1ms"}
    for trial in range(3):
        whole = simulated(path, trial)
        assert whole["losses"] > 0
        assert simulated({**path, "trace_start": "2ms"}, trial) == whole
        drawn = simulated({**path, "trace_start": "random"}, trial)
        assert drawn["losses"] == whole["losses"]


def test_a_start_without_a_trace_is_refused(trace: Path) -> None:
    data = traced(trace, trace_start="random")
    del data["path"]["trace"]
    with pytest.raises(StudyError, match=r"path\.trace_start: requires trace or cell"):
        load_study(data)
    with pytest.raises(StudyError, match=r'path\.trace_start: .*or "random"'):
        load_study(traced(trace, trace_start="sometimes"))


@pytest.mark.usefixtures("emulated")
def test_real_kernels_meet_the_same_part_of_a_recording(trace: Path, tmp_path: Path) -> None:
    data = traced(trace, trace_start="random")
    data |= {"worlds": ["sim", "netns"], "repeats": 3, "protocols": [data["protocols"][0]]}
    data["workload"] = {"kind": "bulk", "duration": "2s"}
    rows = records(data, tmp_path / "run")
    for trial in range(3):
        sim, netns = (row["goodput_bps"] for row in rows if row["trial"] == trial)
        assert netns == pytest.approx(sim, rel=0.25)
