"""The world `relay`: trials between real processes over sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, command, document
from tests.waiting import PATIENCE_S, wait_until

from longfat.results.run import Cell
from longfat.results.trial import Trial
from longfat.worlds import netns, processes, relay
from longfat.worlds.executor import CancelledTrialError

Data = dict[str, Any]
Write = Callable[..., Path]

SPEC: dict[str, dict[str, Any]] = {
    "path": {"rate": "10Mbit/s", "delay": "5ms", "loss": "1%"},
    "protocol": {"kind": "selective-repeat", "window": 8},
    "workload": {"kind": "file", "size": "100kB"},
}


def trial(number: int = 0, **path: str) -> Trial:
    spec = {**SPEC, "path": {**SPEC["path"], **path}}
    return Trial(f"key{number}", Cell("relay", "sr", {}, spec), number, 1)


def descendants() -> list[int]:
    """Returns the running trial processes that this process started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = status.read_bytes().split(b"\0")
            parent = int((status.parent / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"longfat.worlds._endpoint" in words and parent == os.getpid():
            found.append(int(status.parent.name))
    return found


def test_a_transfer_through_a_relay_is_measured() -> None:
    executor = relay.Relay(1)
    try:
        record = executor.run(trial())
    finally:
        executor.close()
    assert record.error is None
    assert record.metrics is not None
    assert 0 < record.metrics["goodput_bps"] < 10e6
    assert record.metrics["completion_s"] > 0.08
    assert descendants() == []


def test_the_forecast_is_the_simulated_time_divided_by_jobs() -> None:
    one, many = relay.Relay(1), relay.Relay(4)
    trials = [trial(number) for number in range(10)]
    alone, shared = one.forecast(trials), many.forecast(trials)
    assert alone is not None
    assert shared is not None
    assert alone == pytest.approx(4 * shared)
    one.close()
    many.close()


def test_the_forecast_of_requests_contains_their_pauses() -> None:
    requests = {"kind": "request-response", "requests": 5, "think": "1s", "request_size": "1kB"}
    spec = {
        **SPEC,
        "protocol": {"kind": "tcp"},
        "workload": requests,
        "path": {"rate": "10Mbit/s", "delay": "50ms"},
    }
    executor = netns.Netns(1)
    forecast = executor.forecast([Trial("key", Cell("netns", "tcp", {}, spec), 0, 1)])
    executor.close()
    # Four pauses, the handshake, and five round trips.
    assert forecast == pytest.approx(4.6, rel=0.05)


def test_trials_run_concurrently() -> None:
    executor = relay.Relay(4)
    try:
        for number in range(4):
            executor.submit([trial(number, delay="2s")])
        # Each trial runs a receiver, a relay and a sender.
        wait_until(lambda: len(executor._running) == 4 * 3)
        executor.cancel()
    finally:
        executor.close()


def test_a_killed_process_fails_its_trial() -> None:
    executor = relay.Relay(1)
    try:
        future = executor.submit([trial(delay="2s")])
        wait_until(lambda: len(executor._running) == 3)
        sender = next(endpoint for endpoint in executor._running if endpoint.role == "send")
        os.kill(sender.process.pid, signal.SIGKILL)
        records = future.result(PATIENCE_S)
    finally:
        executor.close()
    assert records.trials.columns == ["trial", "error"]
    assert records.trials["error"].to_list() == ["the send process ended (signal 9)"]
    assert descendants() == []


def test_a_hanging_process_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TIMEOUT_FACTOR", 0.0)
    monkeypatch.setattr(processes, "TIMEOUT_MARGIN_S", 0.5)
    executor = relay.Relay(1)
    try:
        record = executor.run(trial(delay="2s"))
    finally:
        executor.close()
    assert record.error == "the send process did not answer within 0.5 s"
    assert descendants() == []


def test_cancelled_trials_have_no_record_and_leave_no_process() -> None:
    executor = relay.Relay(2)
    futures = [executor.submit([trial(number, delay="2s")]) for number in range(4)]
    wait_until(lambda: len(executor._running) == 6)
    executor.cancel()
    for future in futures:
        with pytest.raises(CancelledTrialError):
            future.result(PATIENCE_S)
    executor.close()
    assert descendants() == []


@pytest.mark.parametrize("line", ["", "{}\n", "not json\n", '{"spec": {}, "to": null}\n'])
def test_an_endpoint_exits_on_invalid_input(line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longfat.worlds._endpoint", "send"],
        input=line,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_process_outlives_a_killed_runner(data: Data, write: Write, tmp_path: Path) -> None:
    data["path"]["delay"] = "1s"
    study = write({**data, "worlds": ["relay"]}, "slow.toml")
    runner = subprocess.Popen(command("run", study), cwd=tmp_path, stderr=subprocess.DEVNULL)

    def _endpoints() -> list[Path]:
        children = Path(f"/proc/{runner.pid}/task").glob("*/children")
        pids = {pid for listed in children for pid in listed.read_text().split()}
        return [Path("/proc") / pid for pid in pids]

    try:
        wait_until(lambda: len(_endpoints()) >= 6)
        started = _endpoints()
    finally:
        runner.kill()
        runner.wait()
    assert started
    wait_until(lambda: not [process for process in started if process.exists()])


def test_a_study_runs_in_both_worlds(data: Data, write: Write, cli: Cli) -> None:
    data["repeats"] = 2
    result = document(cli("run", write({**data, "worlds": ["sim", "relay"]}), "--json"))
    assert [cell["world"] for cell in result["cells"]] == ["sim"] * 6 + ["relay"] * 6
    assert all(cell["n"] == 2 for cell in result["cells"])
    assert {claim["world"] for claim in result["claims"]} == {"sim", "relay"}
