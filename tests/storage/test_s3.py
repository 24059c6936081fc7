"""Runs on object storage have the tables of runs in a folder, also with several writers and after kills."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest
import tomli_w

import longfat as lf
from longfat.store import parts
from longfat.system.remote_path import Location, location
from tests.conftest import Cli, command
from tests.effort import cases, count
from tests.storage.conftest import STUDY
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.xdist_group("storage")
"""The tests share a server."""

TRIALS = 160
WRITERS = max(3, cases(8))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(tomli_w.dumps(STUDY), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> lf.Run:
    """The run in a folder."""
    return lf.run(STUDY, out=tmp_path_factory.mktemp("here") / "run", progress=False)


def equal(one: lf.Run, other: lf.Run) -> None:
    assert one.to_polars().equals(other.to_polars())
    assert one.flows_to_polars().equals(other.flows_to_polars())
    assert one.cells == other.cells
    assert one.claims == other.claims
    assert one.claims


@pytest.mark.slow
def test_a_url_gives_the_table_of_a_folder(bucket: str, here: lf.Run) -> None:
    there = lf.run(STUDY, out=f"{bucket}/run", progress=False)
    equal(there, here)
    equal(lf.load_run(f"{bucket}/run"), here)
    assert str(there.report) == f"{bucket}/run/report.html"
    assert b"<html" in there.report.read_bytes()
    again = lf.run({**STUDY, "repeats": 41}, out=f"{bucket}/run", progress=False)
    assert again.to_polars().height == TRIALS + 4
    assert len(parts.read(location(f"{bucket}/run"))) == TRIALS + 4


@pytest.mark.slow
def test_shards_in_any_order_give_the_whole_table(bucket: str, here: lf.Run, tmp_path: Path) -> None:
    for out in (f"{bucket}/shards", str(tmp_path / "shards")):
        for number in (3, 1, 2):
            found = lf.run(STUDY, out=out, shard=f"{number}/3", progress=False)
            assert found.interrupted == (number != 2)
            assert found.report.exists() == (number == 2)
        equal(found, here)


@pytest.mark.slow
def test_a_shard_reads_only_its_own_records(
    here: lf.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = parts.frame_of

    def noted(part: Location, content: bytes, wanted: parts.Wanted) -> pl.DataFrame:
        read.append(parts.tag_of(part))
        return whole(part, content, wanted)

    monkeypatch.setattr(parts, "frame_of", noted)
    for number in (3, 1, 3, 2):
        read.clear()
        found = lf.run(STUDY, out=tmp_path / "run", shard=f"{number}/3", progress=False, report=False)
        if number != 2:
            assert set(read) == {f"{number}of3"}
            assert found.to_polars().height == len(range(number - 1, TRIALS, 3))
    assert set(read) == {"1of3", "2of3", "3of3"}
    equal(found, here)


@pytest.mark.slow
def test_several_writers_at_once(bucket: str, here: lf.Run, study: Path) -> None:
    writers = [
        subprocess.Popen(
            command("run", study, "--out", f"{bucket}/many", "--jobs", 1, "--shard", f"{number}/{WRITERS}"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(1, WRITERS + 1)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=4 * PATIENCE_S)
        assert writer.returncode == 0, errors
    records = [pl.read_parquet(part.read_bytes()) for part in parts.listed(location(f"{bucket}/many"))]
    assert pl.concat(records).select("cell_key", "trial").is_duplicated().sum() == 0
    equal(lf.load_run(f"{bucket}/many"), here)


@pytest.mark.slow
def test_killed_again_and_again_then_completed(bucket: str, here: lf.Run, study: Path) -> None:
    moments = random.Random(1)
    for _ in range(count("LONGFAT_KILLS", 4)):
        process = subprocess.Popen(
            command("run", study, "--out", f"{bucket}/killed"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(1, 5))
        process.kill()
        process.wait()
    equal(lf.run(study, out=f"{bucket}/killed", progress=False), here)


@pytest.mark.slow
def test_open_lists_the_runs_below_a_url(bucket: str, cli: Cli, study: Path) -> None:
    for name in ("one", "deeper/two"):
        cli("run", study, "--out", f"{bucket}/{name}")
    page = Path(cli("open", "--folder", bucket, "--no-browser").stdout.strip())
    text = page.read_text()
    assert f"{bucket}/one</code>" in text
    assert f"{bucket}/deeper/two</code>" in text
    assert "report.html" not in text
    report = Path(cli("open", "one", "--folder", bucket, "--no-browser").stdout.strip())
    assert report.parent == page.parent
    assert report.read_bytes() == location(f"{bucket}/one/report.html").read_bytes()
    assert Path(cli("open", "one", "--folder", bucket, "--no-browser").stdout.strip()) == report
    refused = cli("open", "--folder", f"{bucket}/none", "--no-browser", ok=False)
    assert refused.returncode == 2
    assert f"{bucket}/none: no runs with a report" in refused.stderr


@pytest.mark.slow
def test_open_names_what_is_missing(bucket: str, cli: Cli, study: Path) -> None:
    cli("run", study, "--out", f"{bucket}/run", "--repeats", 2)
    refused = cli("open", f"{bucket}/other", "--no-browser", ok=False)
    assert refused.stderr == f"longfat: {bucket}/other: no run here\n"
    for words in ([f"{bucket}-none/run"], ["run", "--folder", f"{bucket}-none"]):
        refused = cli("open", *words, "--no-browser", ok=False)
        name = f"{bucket}-none".removeprefix("s3://")
        assert refused.stderr.endswith(f": the bucket {name} does not exist\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "url", "reason"),
    [
        ({}, "s3://no-such-bucket/run", "The specified bucket does not exist"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "s3://any/run", "Could not connect to the endpoint URL"),
        ({"AWS_ACCESS_KEY_ID": ""}, "s3://any/run", "Unable to locate credentials"),
        ({}, "gs://bucket/run", "needs another package: pip install gcsfs"),
        ({}, "nonsense://bucket/run", "Protocol not known: nonsense"),
    ],
)
def test_what_is_missing_is_one_line(
    bucket: str,
    study: Path,
    cli_process: Cli,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    url: str,
    reason: str,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = cli_process("run", study, "--out", url, "--repeats", 1, ok=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("longfat: ")]
    assert done.returncode == 1
    assert len(errors) == 1
    assert errors[0].startswith(f"longfat: {url}")
    assert reason in errors[0]
    if "bucket" not in reason:
        opened = cli_process("open", url, "--no-browser", ok=False)
        assert opened.returncode == 1
        assert reason in opened.stderr


@pytest.mark.slow
def test_shards_with_other_settings_are_refused(bucket: str, tmp_path: Path) -> None:
    for out in (f"{bucket}/run", str(tmp_path / "run")):
        lf.run(STUDY, out=out, shard="1/2", progress=False)
        with pytest.raises(ValueError, match="was started with other settings"):
            lf.run({**STUDY, "repeats": 3}, out=out, shard="2/2", progress=False)
        with pytest.raises(ValueError, match="shard: fresh would remove"):
            lf.run(STUDY, out=out, shard="1/2", fresh=True, progress=False)


@pytest.mark.slow
def test_duckdb_and_polars_read_the_records(here: lf.Run) -> None:
    files = f"{here.folder}/records/part-*.parquet"
    query = f"SELECT protocol, avg(goodput_bps) FROM '{files}' GROUP BY protocol ORDER BY protocol"
    found = dict(duckdb.connect().execute(query).fetchall())
    frame = pl.scan_parquet(files).group_by("protocol").agg(pl.col("goodput_bps").mean()).collect()
    assert found == pytest.approx(dict(frame.iter_rows()))
    assert set(found) == {"reno", "cubic"}
