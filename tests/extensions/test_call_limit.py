"""Custom classes whose calls do not return: the trial fails, and signals still stop the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from tests.extensions.endless import STARTED
from tests.waiting import PATIENCE_S

FILE = Path(__file__).parent / "endless.py"
PATH = lf.Path(rate="10Mbit/s", delay="10ms")
LIMIT = "no result within 0.2 s (call_limit_s of the class)"


@pytest.mark.parametrize("name", ["Brief", "Stubborn"])
def test_a_call_above_its_limit_fails_the_trial(name: str) -> None:
    with pytest.raises(lf.TransferError) as failed:
        lf.simulate(f"{FILE}:{name}", PATH, "100kB")
    assert f"endless.py:{name}.on_acknowledged: {LIMIT}" in str(failed.value)


def test_a_queue_has_a_limit_too() -> None:
    with pytest.raises(lf.TransferError) as failed:
        lf.simulate("cubic", lf.Path(rate="10Mbit/s", queue=f"{FILE}:Queue"), "100kB")
    assert f"endless.py:Queue.enqueue: {LIMIT}" in str(failed.value)


def test_a_session_ends_with_the_error() -> None:
    session = lf.Session(f"{FILE}:Brief", PATH, "100kB")
    with pytest.raises(ValueError, match="no result within"):
        session.advance("1s")


def test_the_other_protocols_of_a_run_have_results(tmp_path: Path) -> None:
    study: dict[str, Any] = {
        "title": "One controller loops",
        "path": {"rate": "10Mbit/s", "delay": "10ms"},
        "workload": {"kind": "file", "size": "100kB"},
        "protocols": ["reno", {"name": "endless", "kind": "tcp", "congestion": f"{FILE}:Brief"}],
        "repeats": 2,
    }
    frame = lf.run(study, out=tmp_path / "run", jobs=2).to_polars()
    failed = frame.filter(frame["protocol"] == "endless")["error"].to_list()
    assert len(failed) == 2
    assert all(LIMIT in error for error in failed)
    assert frame.filter(frame["protocol"] == "reno")["error"].null_count() == 2


def test_a_wrong_limit_is_one_line() -> None:
    with pytest.raises(ValueError, match=r"call_limit_s is -1.0: above 0, up to 86400 s"):
        lf.simulate(f"{FILE}:WrongLimit", PATH, "100kB")


INTERRUPT = """
import os, signal, sys, threading, time
import longfat as lf

def interrupt():
    end = time.monotonic() + {longest_s}
    while not os.path.exists("started") and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt, daemon=True).start()
try:
    {code}
except KeyboardInterrupt:
    os.write(1, b"interrupted")
    os._exit(0)
"""


def interrupted(code: str, folder: Path, *, starts: bool = True) -> bool:
    """Returns whether SIGINT raises KeyboardInterrupt in a process that runs `code`.

    The signal comes when a class of `endless.py` is called or, without `starts`, after two seconds.
    """
    text = INTERRUPT.format(code=code, longest_s=PATIENCE_S if starts else 2)
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**os.environ, STARTED: "started"},
        capture_output=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    return done.stdout == b"interrupted"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["Endless", "Asleep"])
@pytest.mark.slow
def test_ctrl_c_stops_a_run(tmp_path: Path, name: str, jobs: int) -> None:
    study: dict[str, Any] = {
        "title": "All controllers loop",
        "path": {"rate": "10Mbit/s", "delay": "10ms"},
        "workload": {"kind": "file", "size": "100kB"},
        "protocols": [{"name": "endless", "kind": "tcp", "congestion": f"{FILE}:{name}"}],
        "repeats": 4,
    }
    assert interrupted(f"lf.run({study!r}, out='run', jobs={jobs})", tmp_path)


@pytest.mark.parametrize("protocol", [f"{FILE}:Endless", "reno"])
def test_ctrl_c_stops_a_simulation(tmp_path: Path, protocol: str) -> None:
    path = 'lf.Path(rate="1Gbit/s", delay="1ms")'
    workload = "workload={'kind': 'bulk', 'duration': '3600s'}"
    code = f"lf.simulate({protocol!r}, {path}, {workload})"
    assert interrupted(code, tmp_path, starts=protocol != "reno")


def test_ctrl_c_stops_a_session(tmp_path: Path) -> None:
    path = 'lf.Path(rate="1Gbit/s", delay="1ms")'
    made = f"lf.Session({f'{FILE}:Endless'!r}, {path}, '1MB')"
    assert interrupted(f"{made}.advance('3600s')", tmp_path)
