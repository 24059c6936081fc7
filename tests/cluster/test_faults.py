"""Workers that die or lack memory, a scheduler that stops, and clients that end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import longfat as lf
from longfat.cluster import ClusterError, single, worker
from longfat.cluster.batch import Batch
from longfat.cluster.connection import Connection, Target
from longfat.store.planning import CellTrials
from longfat.study import cells, load_study
from longfat.worlds.executor import KILLED
from tests.cluster.processes import kill, machines
from tests.conftest import command
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")

PARTS = Path(__file__).with_name("parts.py")
PATH = {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": "5%"}
STUDY: dict[str, Any] = {
    "title": "Faults",
    "repeats": 36,
    "path": PATH,
    "workload": {"kind": "file", "size": "30kB"},
    "protocols": [{"name": "aimd", "kind": "tcp", "congestion": "parts.py:Aimd"}],
}
LONG = STUDY | {"path": PATH | {"loss": "0%"}, "repeats": 80, "workload": {"kind": "file", "size": "1MB"}}


def with_controller(name: str) -> dict[str, Any]:
    return STUDY | {"protocols": [{"name": "aimd", "kind": "tcp", "congestion": f"parts.py:{name}"}]}


def write(folder: Path, study: dict[str, Any]) -> Path:
    file = folder / "study.toml"
    file.write_text(tomli_w.dumps(study), encoding="utf-8")
    (folder / "parts.py").write_text(PARTS.read_text(encoding="utf-8"), encoding="utf-8")
    return file


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_is_set_aside_alone(tmp_path: Path) -> None:
    reference = lf.run(write(tmp_path, STUDY), out=tmp_path / "reference", progress=False).to_polars()
    poisonous = reference.filter(reference["timeouts"] > 0)["trial"].to_list()
    assert 0 < len(poisonous) < 10
    write(tmp_path, with_controller("Poison"))
    arguments = ("run", "study.toml", "--out", "there", "--executor", "dask", "--jobs", "2")
    done = subprocess.run(
        command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert f"which {KILLED}" in done.stderr
    assert re.search(
        r"a worker died; its (trial runs again|\d+ trials run again, one by one)$", done.stderr, re.MULTILINE
    )
    there = lf.load_run(tmp_path / "there").to_polars()
    assert there.filter(there["error"] == KILLED)["trial"].to_list() == poisonous
    innocent = ~reference["trial"].is_in(poisonous)
    columns = [name for name in there.columns if name != "error"]
    assert there.filter(innocent).select(columns).equals(reference.filter(innocent).select(columns))
    aside = [json.loads(file.read_text()) for file in (tmp_path / "there" / "aside").iterdir()]
    assert sorted(one["spec"]["trial"] for one in aside) == poisonous


def test_a_trial_without_bounds_is_killed_at_the_memory_limit(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, with_controller("Glutton")))
    reference = lf.run(with_file(tmp_path), out=tmp_path / "reference", progress=False).to_polars()
    number = reference.filter(reference["timeouts"] > 0)["trial"][0]
    batch = Batch.of(CellTrials(cells(study), 0, study.seed, "", range(number, number + 2)))
    contents = {one.digest: one.content() for one in batch.attachments}
    found = single.run_singly(batch, contents, tmp_path / "files", 400e6)
    assert found.trials["trial"].to_list() == [number, number + 1]
    assert found.trials["error"][0] == KILLED


def with_file(folder: Path) -> Path:
    folder = folder / "other"
    folder.mkdir()
    return write(folder, STUDY)


@pytest.mark.slow
def test_a_run_survives_workers_and_schedulers(tmp_path: Path) -> None:
    """Also a scheduler that answers nothing for seconds, and workers that join."""
    file = write(tmp_path, LONG)
    here = lf.run(file, out=tmp_path / "here", progress=False)
    with machines(tmp_path, 1) as cluster:

        def disturb() -> None:
            time.sleep(1.0)
            cluster.start_worker()
            os.kill(cluster.scheduler.pid, signal.SIGSTOP)
            time.sleep(2.0)
            os.kill(cluster.scheduler.pid, signal.SIGCONT)
            time.sleep(0.5)
            kill(cluster.workers[0])
            kill(cluster.scheduler)
            for _ in range(20):
                cluster.revive(2)
                time.sleep(0.2)

        trouble = threading.Thread(target=disturb)
        # The first trial runs before the trouble starts.
        with Connection(Target(cluster.address)):
            trouble.start()
        there = lf.run(file, out=tmp_path / "there", progress=False, scheduler=cluster.address)
        trouble.join()
    assert there.to_polars().equals(here.to_polars())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_client_ends_its_workers(tmp_path: Path, number: int) -> None:
    write(tmp_path, LONG | {"repeats": 4000})
    process = subprocess.Popen(
        command("run", "study.toml", "--out", "there", "--executor", "dask", "--jobs", "2"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: list((tmp_path / "there").glob("records/part-*")))
        # Ctrl-C reaches all processes of a terminal's group.
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        kill(process)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert errors.splitlines()[-1].startswith("longfat: stopped; there has the finished trials")
    assert "Traceback" not in errors
    wait_until(lambda: not group(process.pid))


def group(number: int) -> list[str]:
    """Returns the processes of a session that have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(status[3]) == number and status[0] != "Z":
            found.append(process.name)
    return found


@pytest.mark.slow
def test_ctrl_c_ends_a_run_without_scheduler(tmp_path: Path) -> None:
    write(tmp_path, LONG | {"repeats": 4000})
    with machines(tmp_path, 1) as cluster:
        process = subprocess.Popen(
            command("run", "study.toml", "--out", "there", "--scheduler", cluster.address),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: list((tmp_path / "there").glob("records/part-*")))
        kill(cluster.scheduler)
        time.sleep(1.0)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "lost the scheduler" in errors
    assert "Traceback" not in errors
    assert time.monotonic() - started < 10


def test_a_worker_of_another_version_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    file = write(tmp_path, STUDY)
    monkeypatch.setattr("longfat._native.version", lambda: "0.0.1")
    with pytest.raises(ClusterError, match=r"^worker tcp://\S+ has longfat \S+: install 0\.0\.1 there$"):
        lf.run(file, out=tmp_path / "there", progress=False, scheduler=scheduler)
    # A worker that joins later.
    monkeypatch.setattr(Connection, "_check_workers", lambda _: [])
    with pytest.raises(ClusterError, match=r"^the worker at \S+ has longfat \S+, the client 0\.0\.1$"):
        lf.run(file, out=tmp_path / "there", progress=False, scheduler=scheduler)


@pytest.mark.slow
def test_a_worker_may_end_while_the_client_connects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = str(tmp_path / "ended")

    def about() -> Any:
        """Ends the first worker that runs it."""
        try:
            Path(ended).touch(exist_ok=False)
        except FileExistsError:
            return worker.about()
        os._exit(1)

    with machines(tmp_path, 2) as cluster:
        monkeypatch.setattr(worker, "about", about)
        with Connection(Target(cluster.address)) as connection:
            (found,) = connection.workers
    assert found["host"]
    assert Path(ended).exists()


@pytest.mark.slow
def test_a_line_reports_that_a_worker_is_gone(tmp_path: Path) -> None:
    notes: list[str] = []
    with (
        machines(tmp_path, 2) as cluster,
        Connection(Target(cluster.address), note=notes.append) as connection,
    ):
        wait_until(lambda: connection.threads == 2)
        kill(cluster.workers[0])
        wait_until(lambda: notes)
    assert notes == ["workers with 1 of 2 threads are gone"]


def test_a_worker_refuses_another_version() -> None:
    with pytest.raises(worker.VersionError):
        worker.run_batch("0.0.1", b"", {}, False)
