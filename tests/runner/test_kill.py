"""A rerun completes a killed run: no record is lost, duplicated or corrupt."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import Cli, command, document
from tests.effort import count
from tests.waiting import PATIENCE_S

Data = dict[str, Any]
Write = Callable[..., Path]

REPEATS = 29
TRIALS = 2 * 3 * REPEATS


@pytest.fixture
def long_study(data: Data, write: Write) -> Path:
    """A study that runs for a few seconds."""
    return write({**data, "repeats": REPEATS, "workload": {"kind": "file", "size": "12MB"}}, "long.toml")


def start(study: Path, *options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("run", study, "--json", *options),
        cwd=study.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def read_parts(folder: Path) -> pl.DataFrame:
    """Reads all parts; a corrupt part raises an error."""
    frames = [pl.read_parquet(part) for part in sorted((folder / "records").glob("part-*.parquet"))]
    return pl.concat(frames) if frames else pl.DataFrame({"cell_key": [], "trial": []})


def seconds_until(folder: Path, what: str, process: subprocess.Popen[bytes]) -> float:
    """Returns the time until a file appears in the folder of a run."""
    start_time = time.monotonic()
    while not list(folder.glob(what)) and process.poll() is None:
        time.sleep(0.002)
    return time.monotonic() - start_time


@pytest.mark.slow
def test_a_run_killed_repeatedly_is_completed_by_a_rerun(long_study: Path, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "long"
    # The duration of an uninterrupted run; kills occur at random times within it.
    reference = start(long_study, "--out", tmp_path / "reference")
    span = seconds_until(tmp_path / "reference", "report.html", reference)
    reference.communicate(timeout=PATIENCE_S)
    assert reference.returncode == 0
    moments = random.Random(2)
    for _ in range(max(2, count("LONGFAT_KILLS", 6))):
        process = start(long_study)
        time.sleep(moments.uniform(0, span))
        process.kill()
        process.communicate()
        if folder.exists():
            assert not read_parts(folder).select("cell_key", "trial").is_duplicated().any()
    result = document(cli("run", long_study, "--json"))
    assert all(cell["n"] == REPEATS for cell in result["cells"])
    records = read_parts(folder)
    assert records.select("cell_key", "trial").n_unique() == records.height == TRIALS
    assert not list(folder.rglob(".*.tmp"))
    # The records equal those of the uninterrupted run.
    columns = [c for c in records.columns if c != "params"]
    uninterrupted = read_parts(tmp_path / "reference")
    assert (
        records.select(columns)
        .sort("cell_key", "trial")
        .equals(uninterrupted.select(columns).sort("cell_key", "trial"))
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("number", "options", "how"),
    [(signal.SIGINT, [], b"again"), (signal.SIGTERM, ["--fresh"], b"without fresh")],
)
@pytest.mark.slow
def test_a_stopped_run_keeps_finished_trials_and_names_how_to_resume(
    data: Data,
    write: Write,
    tmp_path: Path,
    cli: Cli,
    number: signal.Signals,
    options: list[str],
    how: bytes,
) -> None:
    study = write({**data, "repeats": 20_000}, "long.toml")
    process = start(study, *options)
    seconds_until(tmp_path / "runs" / "long", "records/part-00003-*.parquet", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert out == b""
    assert b"runs/long has the finished trials: run the same command " + how + b" to resume" in err
    assert b"Traceback" not in err
    kept = read_parts(tmp_path / "runs" / "long").height
    assert 0 < kept < 6 * 20_000
    done = cli("run", study, "--json", "--repeats", 4)
    assert "24 already there" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits are those of POSIX")
def test_a_full_disk_is_one_line(data: Data, write: Write, tmp_path: Path, cli: Cli) -> None:
    study = write({**data, "repeats": REPEATS}, "long.toml")
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000));"
        "from longfat.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", limited, "run", str(study)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("longfat: ")]
    assert len(errors) == 1, done.stderr
    assert re.search(r"-00001-\w+\.parquet: File too large", errors[0])
    assert "Traceback" not in done.stderr
    assert read_parts(tmp_path / "runs" / "long").height == 0
    assert all(cell["n"] == REPEATS for cell in document(cli("run", study, "--json"))["cells"])


def test_two_runs_do_not_share_a_folder(data: Data, write: Write, tmp_path: Path, cli: Cli) -> None:
    study = write({**data, "repeats": 20_000}, "long.toml")
    process = start(study)
    try:
        seconds_until(tmp_path / "runs" / "long", "run.json", process)
        second = cli("run", study, ok=False)
        assert second.returncode == 2
        assert f"another run uses this folder (process {process.pid})" in second.stderr
    finally:
        process.kill()
        process.communicate()


def test_the_folder_names_its_study_from_the_start(
    data: Data, write: Write, tmp_path: Path, cli: Cli
) -> None:
    cli("run", write(data, "one.toml"), "--out", "here")
    about = json.loads((tmp_path / "here" / "run.json").read_text())
    assert about["study"] == "one"
    assert {"longfat", "kernel", "cpu", "cores", "python", "date", "argv"} <= set(about["environment"])
    refused = cli("run", write(data, "two.toml"), "--out", "here", ok=False)
    assert refused.returncode == 2
    assert 'has records of the study "one", not of "two"' in refused.stderr
