"""Records by cells and metrics, read from parts in bounded memory."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence

import polars as pl
import pytest

from longfat.store import parts, table
from longfat.store.copies import Copies
from longfat.store.present import Present
from longfat.store.table import Table
from longfat.system.remote_path import location


def part(
    key: str, trials: Sequence[int], error: str | None = None, **metrics: list[float | None]
) -> pl.DataFrame:
    return pl.DataFrame({"cell_key": key, "trial": trials, "error": error, **metrics}).with_columns(
        pl.col("error").cast(pl.String)
    )


class Parts:
    """Parts that count how often they are read."""

    def __init__(self, *found: pl.DataFrame) -> None:
        self.found = found
        self.reads = 0

    def frames(self, wanted: parts.Wanted) -> Iterator[pl.DataFrame]:
        self.reads += 1
        yield from (one.select(name for name in one.columns if wanted(name)) for one in self.found)


SOME = (
    part("a", [3, 0], x=[4.0, 1.0], y=[7.0, 7.0]),
    part("b", [0], "no route"),
    part("a", [1], "peer silent"),
    part("other", [0], x=[9.0]),
    part("a", [3, 2, 9], x=[4.0, None, 8.0], z=[None, 5.0, None]),
)


@pytest.mark.parametrize("cache", [0, table.CACHE])
def test_parts_become_cells(cache: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CACHE", cache)
    found = Table(Parts(*SOME).frames, ["a", "b", "a"], [5, 5, 1])
    assert found.height == 4 + 1 + 1
    assert [list(found.trials(cell)) for cell in range(3)] == [[0, 2, 3], [], [0]]
    assert [found.failures(cell) for cell in (0, 1)] == [{"peer silent": 1}, {"no route": 1}]
    assert found.varying(0) == {"x": True, "y": True, "z": True}
    assert found.varying(1) == {}
    values = found.values(0, "x").tolist()
    assert (values[0], values[2]) == (1.0, 4.0)
    assert math.isnan(values[1])
    assert found.values(2, "x").tolist() == [1.0]
    rows = found.measured()
    assert rows["cell"].to_list() == [0, 0, 0, 0, 1, 2]
    assert rows["trial"].to_list() == [0, 1, 2, 3, 0, 0]
    assert rows["x"].to_list() == [1.0, None, None, 4.0, None, 1.0]
    assert rows["error"].to_list() == [None, "peer silent", None, None, "no route", None]
    assert rows.columns == ["cell", "trial", "error", "x", "y", "z"]


def test_small_runs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = Parts(*SOME), Parts(*SOME)
    found = Table(small.frames, ["a"], [5])
    monkeypatch.setattr(table, "CACHE", 0)
    other = Table(large.frames, ["a"], [5])
    for metric in ("x", "y", "x"):
        assert found.values(0, metric).tolist()[0] == other.values(0, metric).tolist()[0]
    assert (small.reads, large.reads) == (1, 4)


def test_equal_values_do_not_vary() -> None:
    found = Table(Parts(part("a", [0], x=[1.0]), part("a", [1], x=[1.0])).frames, ["a"], [2])
    assert found.varying(0) == {"x": False}


def test_present_trials_are_not_missing() -> None:
    present = Present(SOME)
    assert list(present.missing("a", range(12))) == [4, 5, 6, 7, 8, 10, 11]
    assert present.missing("c", range(1, 9, 3)) == range(1, 9, 3)


def test_remote_parts_are_read_once() -> None:
    fsspec = pytest.importorskip("fsspec")
    place = location("memory://copied")
    (place / parts.RECORDS / "part-00001-aa.parquet").write_bytes(parts.encoded(SOME[0]))
    copies = Copies(place)
    (first,) = copies.frames(lambda _: True)
    (place / parts.RECORDS / "part-00001-aa.parquet").write_bytes(b"")
    (again,) = copies.frames(lambda _: True)
    assert again.equals(first)
    fsspec.filesystem("memory").store.clear()


RUN = """
import resource
import sys
from benchmarks import store
exec(store.RUN.format(folder=sys.argv[1], trials=sys.argv[2], cells=50, metrics=store.METRICS))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_trials(tmp_path_factory: pytest.TempPathFactory) -> None:
    def mebibytes(trials: int) -> float:
        folder = tmp_path_factory.mktemp("run") / "run"
        done = subprocess.run(
            [sys.executable, "-c", RUN, folder, str(trials)], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    # All parts have their full size from 100,000 trials. In memory, the records of 900,000 have 43 MiB.
    assert mebibytes(1_000_000) - mebibytes(100_000) < 25
