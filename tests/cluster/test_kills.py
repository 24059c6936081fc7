"""Workers, the scheduler and the client are killed at random moments: the table is that of a local run.

LONGFAT_KILLS sets the number of kills.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
import tomli_w

import longfat as lf
from longfat.api.runs import load_run
from tests.cluster.processes import Machines, kill, machines
from tests.conftest import command
from tests.effort import count

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

KILLS = count("LONGFAT_KILLS", 4)
STUDY = {
    "title": "To be killed",
    "repeats": 60,
    "path": {"rate": "50Mbit/s", "delay": "10ms", "queue": "40pkt"},
    "workload": {"kind": "file", "size": "2MB"},
    "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}, {"name": "cubic", "kind": "tcp"}],
    "sweep": {"path.loss": ["0.1%", "1%"]},
}
DEADLINE_S = 60.0 + 20.0 * KILLS


def start_client(folder: Path, machines: Machines, errors: Path) -> subprocess.Popen[bytes]:
    arguments = ("run", "study.toml", "--out", "there", "--scheduler", machines.address)
    with errors.open("ab") as stream:
        return subprocess.Popen(
            command(*arguments), cwd=folder, stdout=stream, stderr=stream, start_new_session=True
        )


def test_kills_at_random_moments_leave_the_table_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(tomli_w.dumps(STUDY))
    here = lf.run(tmp_path / "study.toml", out=tmp_path / "here", progress=False)
    draw, killed, errors = random.Random(16), {"worker": 0, "scheduler": 0, "client": 0}, tmp_path / "errors"
    until, rounds = time.monotonic() + DEADLINE_S, 0
    with machines(tmp_path) as cluster:
        client = start_client(tmp_path, cluster, errors)
        try:
            while sum(killed.values()) < KILLS or client.poll() is None:
                assert time.monotonic() < until, errors.read_text()
                time.sleep(draw.uniform(0.2, 3.0))
                cluster.revive(2)
                if client.poll() is not None:
                    assert client.returncode in (0, -9), errors.read_text()
                    if sum(killed.values()) == KILLS:
                        if client.returncode == 0:
                            break
                    elif client.returncode == 0:
                        # All trials are complete: another run gets the remaining kills.
                        same(here, tmp_path)
                        rounds += 1
                        (tmp_path / "there").rename(tmp_path / f"there-{rounds}")
                    client = start_client(tmp_path, cluster, errors)
                elif sum(killed.values()) < KILLS:
                    what = draw.choice(["worker", "worker", "scheduler", "client"])
                    kill(
                        {
                            "worker": draw.choice(cluster.workers),
                            "scheduler": cluster.scheduler,
                            "client": client,
                        }[what]
                    )
                    killed[what] += 1
        finally:
            kill(client)
    same(here, tmp_path)
    print(f"killed {killed}, {rounds + 1} runs")


def same(here: lf.RunResult, folder: Path) -> None:
    there = load_run(folder / "there")
    assert there.to_polars().equals(here.to_polars())
    assert there.flows_to_polars().equals(here.flows_to_polars())
