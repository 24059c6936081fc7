"""Trials on a cluster have the records of trials on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat import _native
from longfat.cluster import ClusterError, Connection, Target, open_machines
from longfat.store import store
from tests.conftest import Cli

pytest.importorskip("distributed")

STUDY: dict[str, Any] = {
    "title": "Reno and CUBIC",
    "repeats": 40,
    "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"},
    "workload": {"kind": "file", "size": "60kB"},
    "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}, {"name": "cubic", "kind": "tcp"}],
    "sweep": {"path.loss": ["0.1%", "1%"]},
}


@pytest.mark.parametrize("is_local", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_cluster_gives_the_same_table(tmp_path: Path, scheduler: str, is_local: bool) -> None:
    here = lf.run(STUDY, out=tmp_path / "here", progress=False)
    where: dict[str, Any] = {"executor": "dask", "jobs": 2} if is_local else {"scheduler": scheduler}
    there = lf.run(STUDY, out=tmp_path / "there", progress=False, **where)
    assert there.to_polars().equals(here.to_polars())
    assert there.flows_to_polars().equals(here.flows_to_polars())
    cluster = store.describe(tmp_path / "there")["environment"]["cluster"]
    assert (cluster["workers"], cluster["longfat"]) == (2, [_native.version()])


def test_a_cluster_without_scheduler_is_one_line() -> None:
    with (
        pytest.raises(ClusterError, match=r"^tcp://127\.0\.0\.1:9: no scheduler answers"),
        Connection(Target("tcp://127.0.0.1:9"), patience=0.5),
    ):
        pass


@pytest.mark.parametrize("address", ["nonsense", "tcp://host", "8786", "host:"])
def test_text_that_is_no_address_is_refused_at_once(address: str) -> None:
    started = time.monotonic()
    with pytest.raises(ClusterError, match=f'^"{address}" is not an address'), Connection(Target(address)):
        pass
    assert time.monotonic() - started < 10


def test_a_scheduler_file_is_awaited_for_a_limited_time(tmp_path: Path) -> None:
    file = str(tmp_path / "scheduler.json")
    notes: list[str] = []
    missing = Connection(Target(scheduler_file=file), note=notes.append, patience=0.3)
    with pytest.raises(ClusterError, match=r"scheduler\.json: no scheduler has written this file"), missing:
        pass
    assert notes == [f"waiting for a scheduler that writes {file}"]


@pytest.mark.parametrize("process", [pytest.param("NANNY", marks=pytest.mark.slow), "SCHEDULER"])
def test_a_local_cluster_that_does_not_start_is_one_line(
    cli_process: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: str
) -> None:
    monkeypatch.setenv(f"DASK_DISTRIBUTED__{process}__PRELOAD", "no_such_module")
    done = cli_process("run", "arq/loss", "--world", "sim", "--executor", "dask", ok=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("longfat: the local cluster does not start: ")
    assert "No module named 'no_such_module'" in last
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("executor", "scheduler", "jobs", "message"),
    [
        ("slurm", None, None, 'executor: "slurm" is unknown; allowed: local, dask'),
        ("local", "tcp://127.0.0.1:9", None, "executor: local trials need no scheduler"),
        (None, "tcp://127.0.0.1:9", 2, "jobs: cannot be set for a scheduler"),
    ],
)
def test_options_that_contradict_each_other(
    executor: str | None, scheduler: str | None, jobs: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"), open_machines(executor, Target(scheduler), jobs):
        pass


def test_the_command_names_its_options(cli: Cli) -> None:
    refused = cli("run", "arq/loss", "--scheduler", "tcp://127.0.0.1:9", "--jobs", 2, ok=False)
    assert refused.stderr == "longfat: --jobs: cannot be set for a scheduler, whose workers decide\n"
    refused = cli("run", "arq/loss", "--executor", "slurm", ok=False)
    assert refused.stderr == 'longfat: --executor: "slurm" is unknown; allowed: local, dask\n'


@pytest.mark.slow
def test_local_clusters_share_no_port() -> None:
    with Connection(Target(), 1) as first, Connection(Target(), 1) as second:
        assert (len(first.workers), len(second.workers)) == (1, 1)
