"""Parts on all storages: compaction loses no record, and readers return each record once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longfat.results.run import Cell
from longfat.results.trial import Record, Records, Trial
from longfat.store import compaction, parts
from longfat.store.lock import FolderBusyError
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.store.shard import Shard
from longfat.store.store import Store, open_store
from longfat.study import Study
from longfat.system import files
from longfat.system.files import create_whole
from longfat.system.remote_path import Location, RemotePath, location

CELL = Cell("sim", "sr", {}, {"path": {}, "protocol": {}, "workload": {}})
FLOW = [("id", "u32", [0])]


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    if request.param == "folder":
        yield tmp_path / "run"
        return
    fsspec = pytest.importorskip("fsspec")
    yield location("memory://run")
    fsspec.filesystem("memory").store.clear()


def add(opened: Store, number: int) -> None:
    opened.add(Trial(16 * "0f", CELL, number, 1), Records.of(number, Record({"goodput_bps": float(number)})))
    opened.flush()


def fill(place: Location, study: Study, numbers: range) -> None:
    with open_store(place, study.name, "1", fresh=False, shared=True) as opened:
        opened.describe(study, {})
        for number in numbers:
            add(opened, number)


def values(place: Location) -> list[float]:
    return sorted(parts.read(place)["goodput_bps"].to_list())


def test_many_parts_become_one(place: Location, study: Study) -> None:
    fill(place, study, range(compaction.MANY))
    with open_store(place, study.name, "1", fresh=False) as opened:
        opened.compact()
        assert len(parts.listed(place)) == compaction.MANY
        add(opened, compaction.MANY)
        opened.compact(own=True)
        assert len(parts.listed(place)) == compaction.MANY + 1
        opened.compact()
    (only,) = parts.listed(place)
    assert parts.number_of(only) == compaction.MANY + 2
    assert values(place) == list(range(compaction.MANY + 1))


@pytest.mark.slow
def test_a_kill_during_compaction_loses_and_doubles_nothing(
    place: Location, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place, study, range(40))
    unlink: Any = type(place).unlink
    for step in range(0, 41, 5):
        removed = 0

        def killed(self: Location, *, missing_ok: bool = False, last: int = step) -> None:
            nonlocal removed
            if removed == last:
                raise KeyboardInterrupt
            removed += 1
            unlink(self, missing_ok=missing_ok)

        with monkeypatch.context() as patch, open_store(place, study.name, "1", fresh=False) as opened:
            patch.setattr(type(place), "unlink", killed)
            with contextlib.suppress(KeyboardInterrupt):
                opened.compact()
        assert values(place) == list(range(40))


def test_a_reader_follows_a_compaction(
    place: Location, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place, study, range(30))
    listed = parts.listed
    compacted: list[bool] = []

    def then_compacted(
        folder: Location, kind: str = parts.PART, shard: Shard | None = None
    ) -> list[Location]:
        found = listed(folder, kind, shard)
        if not compacted:
            compacted.append(True)
            with open_store(place, study.name, "1", fresh=False) as opened:
                opened.compact()
        return found

    monkeypatch.setattr(parts, "listed", then_compacted)
    assert values(place) == list(range(30))
    assert len(listed(place)) == 1


def test_two_compactions_at_once_lose_nothing(
    place: Location, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place, study, range(30))
    write = files.write_whole
    nested: list[bool] = []

    def written(path: Location, content: bytes) -> None:
        if not nested:
            nested.append(True)
            Store(place, "1").compact()
        write(path, content)

    monkeypatch.setattr("longfat.store.compaction.write_whole", written)
    Store(place, "1").compact()
    assert values(place) == list(range(30))


def test_the_first_of_two_creators_wins(place: Location) -> None:
    place.mkdir(exist_ok=True)
    assert create_whole(place / "run.json", b"1")
    assert not create_whole(place / "run.json", b"2")
    assert (place / "run.json").read_bytes() == b"1"
    assert [one.name for one in place.iterdir()] == ["run.json"]


def test_a_rename_publishes_parts_on_storage_without_atomic_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr("longfat.system.remote_path.WHOLE", set())
    file = location("memory://plain/part-00001-aa.parquet")
    assert isinstance(file, RemotePath)
    file.write_bytes(b"1")
    assert [one.name for one in file.parent.iterdir()] == ["part-00001-aa.parquet"]
    fsspec.filesystem("memory").store.clear()


def test_shards_share_a_folder_and_exclude_whole_runs(folder: Path, study: Study) -> None:
    with (
        open_store(folder, study.name, "1", fresh=False, shared=True),
        open_store(folder, study.name, "1", fresh=False, shared=True),
        pytest.raises(FolderBusyError),
        open_store(folder, study.name, "1", fresh=False),
    ):
        pass


def test_shards_are_balanced_and_cover_all_trials() -> None:
    cells = [Cell("sim", "sr", {"n": n}, {"path": {"n": n}}) for n in range(7)]
    counts = [5] * 7
    shares = [plan(cells, counts, 1, "1", Present(), Shard(n, 4)).missing for n in range(1, 5)]
    assert sorted(len(share) for share in shares) == [8, 9, 9, 9]
    assert len({trial.key for share in shares for trial in share}) == 35
    for share in shares:
        assert all(1 <= len(group.numbers) <= 2 for group in share.groups)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3"])
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f'shard: "{text}" is not a shard'):
        Shard.of(text)


def test_a_url_with_one_slash_is_no_folder() -> None:
    with pytest.raises(ValueError, match=r'^"s3:/lab/x" is not a URL: write it like s3://BUCKET/RUN$'):
        location("s3:/lab/x")
