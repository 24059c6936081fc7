"""Trials beyond this machine's capacity are refused between kernels, unless they are forced.

Tests set the capacity in the file that caches its measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, Data, document, only_lines

from longfat import _native
from longfat.results.trial import Trial
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.study import cells, load_study
from longfat.system.user_folders import cache_folder
from longfat.worlds import capacity
from longfat.worlds.capacity import MachineCapacity, machine_capacity
from longfat.worlds.netns import ACKNOWLEDGED, SHARE, Netns

GBN = {"name": "gbn", "kind": "go-back-n", "window": 8}

Machine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Sets the measured capacity in packets/s, and whether the machine was busy during the measurement."""
    monkeypatch.setattr(capacity, "_boot", lambda: "this boot")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def _measured(packets_per_second: float, *, is_busy: bool = False) -> None:
        kept = {
            "key": {"boot": capacity._boot(), "version": _native.version()},
            "packets_per_second": packets_per_second,
            "late_p99_s": 1e-4,
            "is_busy": is_busy,
        }
        file = cache_folder() / capacity.FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept), encoding="utf-8")
        assert machine_capacity() == MachineCapacity(packets_per_second, 1e-4, is_busy)

    return _measured


def trials(data: Data) -> list[Trial]:
    study = load_study(data, name="kernels")
    planned = cells(study)
    counts = [study.trials_in(cell.world) for cell in planned]
    return list(plan(planned, counts, study.seed, _native.version(), Present()).missing)


def refusals(data: Data) -> list[str]:
    executor = Netns(1)
    try:
        return executor.refusals(trials(data))
    finally:
        executor.close()


def test_a_trial_beyond_the_machine_is_refused(
    machine: Machine, between_kernels: Callable[..., Data]
) -> None:
    study = between_kernels("500kB", GBN)
    executor = Netns(1)
    loads = {trial.cell.protocol: executor._expect(trial)[1] * ACKNOWLEDGED for trial in trials(study)}
    # Reno fills its path of 20 Mbit/s: at most 1,727 segments of 1448 bytes per second, plus ACKs.
    assert 1000 < loads["reno"] < 1727 * ACKNOWLEDGED
    assert loads["gbn"] < loads["reno"]
    machine(loads["reno"] * 1.001)
    assert refusals(study) == []
    machine(loads["reno"] * 0.999)
    (reported,) = refusals(study)
    assert reported.startswith("too many packets: reno is expected to send ")
    assert reported.endswith(f"and this machine emulates {loads['reno'] * 0.999:,.0f}")
    # Both protocols exceed the capacity; the one with more packets is named.
    machine(loads["gbn"] * 0.999)
    assert "reno (and 1 more cells) is expected" in refusals(study)[0]
    executor.close()


def test_a_busy_machine_refuses_nothing(machine: Machine, between_kernels: Callable[..., Data]) -> None:
    machine(100, is_busy=True)
    assert refusals(between_kernels("500kB", GBN)) == []


def test_concurrent_trials_share_the_capacity(machine: Machine, between_kernels: Callable[..., Data]) -> None:
    machine(160_000)
    executor = Netns(4)
    executor.refusals(trials(between_kernels("500kB", GBN)))
    assert executor._budget.limit == 160_000 * SHARE
    executor.close()


@pytest.fixture
def kernels(between_kernels: Callable[..., Data], write: Callable[..., Path]) -> Path:
    """The study file."""
    return write(between_kernels("100kB", GBN), "kernels.toml")


def records(folder: Path) -> list[Path]:
    return list(folder.rglob("part-*.parquet"))


def test_a_refused_run_starts_no_trial(machine: Machine, kernels: Path, cli: Cli, tmp_path: Path) -> None:
    machine(100)
    done = cli("run", kernels, "--json", ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    only_lines(
        done.stderr,
        [
            "longfat: world netns: too many packets: reno (and 1 more cells) is expected to send ",
            "longfat: longfat check measures the paths; --force runs the trials anyway",
        ],
    )
    assert records(tmp_path) == []


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_force_runs_refused_trials(machine: Machine, kernels: Path, cli: Cli, tmp_path: Path) -> None:
    machine(100)
    assert cli("run", kernels, ok=False).returncode == 1
    # The refused run left its folder.
    result: dict[str, Any] = document(cli("run", kernels, "--json", "--force"))
    assert [(cell["protocol"], cell["n"]) for cell in result["cells"]] == [("reno", 1), ("gbn", 1)]
    assert records(tmp_path)


@pytest.mark.parametrize(("late_p99_s", "kept"), [(1e-4, True), (2e-3, False)])
def test_a_measurement_on_a_late_machine_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_p99_s: float, kept: bool
) -> None:
    monkeypatch.setattr(capacity, "_boot", lambda: "this boot")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reported = {"packets_per_second": 5e3, "late_p99_s": late_p99_s, "is_busy": False}
    monkeypatch.setattr(capacity, "_MEASURE", f"print({json.dumps(json.dumps(reported))})")
    assert machine_capacity() == MachineCapacity(5e3, late_p99_s, is_busy=False)
    assert (cache_folder() / capacity.FILE).exists() == kept
