from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.runner.conftest import goodput
from tests.runs import run_study

from longfat.results.run import Cell
from longfat.results.trial import Record, Records, Trial
from longfat.store import parts
from longfat.store.lock import FolderBusyError
from longfat.store.parts import FolderError
from longfat.store.shard import Shard
from longfat.store.store import Store, describe, open_store
from longfat.study import Study

CELL = Cell("sim", "sr", {"path.loss": "2%"}, {"path": {}, "protocol": {}, "workload": {}})


KEY = 16 * "0f"


def add(opened: Store, number: int, record: Record) -> None:
    opened.add(Trial(KEY, CELL, number, 1), Records.of(number, record))


def fill(folder: Path, study: Study, numbers: range, fresh: bool = False) -> None:
    with open_store(folder, study.name, "1", fresh=fresh) as opened:
        opened.describe(study, {})
        for number in numbers:
            add(opened, number, Record({"goodput_bps": float(number)}))
        opened.flush()


def test_records_come_back(folder: Path, study: Study) -> None:
    fill(folder, study, range(3))
    fill(folder, study, range(2, 5))
    with open_store(folder, study.name, "1", fresh=False) as opened:
        assert list(opened.present().missing(KEY, range(1, 9, 2))) == [5, 7]
        assert list(opened.present().missing(16 * "f0", range(3))) == [0, 1, 2]
    read = parts.read(folder)
    assert read["trial"].to_list() == [0, 1, 2, 3, 4]
    assert read["goodput_bps"].to_list() == [0, 1, 2, 3, 4]
    assert len(parts.listed(folder)) == 2


def test_failed_trials_have_an_error_and_no_values(folder: Path, study: Study) -> None:
    with open_store(folder, study.name, "1", fresh=False) as opened:
        opened.describe(study, {})
        add(opened, 0, Record(None, "peer silent for 30 s"))
        opened.flush()
        add(opened, 1, Record({"goodput_bps": 1.0}))
        opened.flush()
    read = parts.read(folder)
    assert read["error"].to_list() == ["peer silent for 30 s", None]
    assert read["goodput_bps"].to_list() == [None, 1.0]


def test_a_folder_has_one_run_at_a_time(folder: Path, study: Study) -> None:
    with (
        open_store(folder, study.name, "1", fresh=False),
        pytest.raises(FolderBusyError, match=f"process {os.getpid()}"),
        open_store(folder, study.name, "1", fresh=True),
    ):
        pass
    fill(folder, study, range(1))


def test_another_studys_folder_is_refused(folder: Path, study: Study) -> None:
    fill(folder, study, range(1))
    for fresh in (False, True):
        with pytest.raises(FolderError, match='records of the study "small", not of "other"'):
            open_store(folder, "other", "1", fresh=fresh).__enter__()
    assert len(parts.read(folder)) == 1


def test_an_unrelated_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderError, match=r"thesis\.tex"):
        open_store(tmp_path, "small", "1", fresh=True).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(FolderError, match="is a file"):
        open_store(tmp_path / "thesis.tex", "small", "1", fresh=False).__enter__()


def test_a_missing_run_has_the_quick_one_as_a_hint(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"it has no run\.json$"):
        describe(tmp_path / "small")
    (tmp_path / "small-quick").mkdir()
    (tmp_path / "small-quick" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FolderError, match=r"did you mean .*small-quick"):
        describe(tmp_path / "small")


def test_a_folder_of_runs_may_hold_a_run_itself(tmp_path: Path, study: Study) -> None:
    fill(tmp_path / "inner", study, range(1))
    fill(tmp_path, study, range(2))
    assert len(parts.read(tmp_path / "inner")) == 1


def test_fresh_removes_records_and_nothing_else(folder: Path, study: Study) -> None:
    fill(folder, study, range(3))
    (folder / "notes.txt").write_text("mine")
    (folder / "report.html").write_text("old")
    fill(folder, study, range(7, 8), fresh=True)
    assert parts.read(folder)["trial"].to_list() == [7]
    assert (folder / "notes.txt").exists()
    assert not (folder / "report.html").exists()


def test_partial_files_of_a_killed_run_are_removed(folder: Path, study: Study) -> None:
    fill(folder, study, range(1))
    leftovers = [folder / ".run.json.tmp", folder / "records" / ".part-00002.parquet.tmp"]
    for leftover in leftovers:
        leftover.write_bytes(b"PAR1 torn")
    fill(folder, study, range(1, 2))
    assert not any(leftover.exists() for leftover in leftovers)
    assert len(parts.read(folder)) == 2


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_corrupt_part_is_named(folder: Path, study: Study, content: bytes) -> None:
    fill(folder, study, range(1))
    (folder / "records" / "part-00002.parquet").write_bytes(content)
    with pytest.raises(FolderError, match=r"part-00002.parquet: is not a complete Parquet file: remove it"):
        parts.read(folder)


def test_a_foreign_part_is_named(folder: Path, study: Study) -> None:
    fill(folder, study, range(1))
    pl.DataFrame({"x": [1]}).write_parquet(folder / "records" / "part-00002.parquet")
    with pytest.raises(FolderError, match="was not written by longfat"):
        parts.read(folder)


@pytest.mark.parametrize("content", ["", "{", "[1]", "\udcff"])
def test_a_broken_description_is_named(folder: Path, study: Study, content: str) -> None:
    fill(folder, study, range(1))
    (folder / "run.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FolderError, match=r"run\.json: .*remove the folder"):
        fill(folder, study, range(1))


def test_a_full_disk_corrupts_nothing(folder: Path, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, study, range(2))

    def _full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with open_store(folder, study.name, "1", fresh=False) as opened:
        add(opened, 5, Record({"goodput_bps": 5.0}))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full)
            with pytest.raises(OSError, match="No space left") as caught:
                opened.flush()
        assert Path(caught.value.filename).name.startswith("part-00002-")
        assert len(parts.read(folder)) == 2
        assert not list((folder / "records").glob(".*"))
        opened.flush()
    assert len(parts.read(folder)) == 3


def test_a_part_is_never_visible_while_incomplete(
    folder: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    replace = Path.replace

    def _look(self: Path, target: Path) -> Path:
        seen.append(len(parts.read(folder)))
        return replace(self, target)

    fill(folder, study, range(1))
    monkeypatch.setattr(Path, "replace", _look)
    fill(folder, study, range(1, 3))
    assert seen[-1] == 1
    assert len(parts.read(folder)) == 3


def test_shards_of_another_count_are_refused(scripted: Any, study: Study, folder: Path) -> None:
    scripted(goodput)
    run_study(study, folder=folder, shard=Shard(1, 3))
    with pytest.raises(ValueError, match="was started with 3 shards, not 4: give all shards the same count"):
        run_study(study, folder=folder, shard=Shard(2, 4))
    # Without shard, the run completes; its shards stay what they are.
    run_study(study, folder=folder)
    with pytest.raises(ValueError, match="3 shards, not 4"):
        run_study(study, folder=folder, shard=Shard(2, 4))
    run_study(study, folder=folder, shard=Shard(2, 3))
    run_study(study, folder=folder, fresh=True)
    run_study(study, folder=folder, shard=Shard(2, 4))
