"""Cells of large studies: made when they are read, equal to those of small ones, in bounded memory."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from longfat.results.trial import CellKeys, cell_key
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.study import StudyError, cells, combinations, load_study, selection
from longfat.study.cell import Cell
from longfat.study.combinations import Points, SpecTexts, Swept
from longfat.study.keys import place
from longfat.study.sweep import MAX_CELLS
from longfat.study.vocabulary import canonical

Data = dict[str, Any]
BYTES_PER_CELL = 1_000


def study(delays: int, sizes: int, **changes: Any) -> Data:
    return {
        "title": "Many cells",
        "repeats": 1,
        "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"},
        "workload": {"kind": "file", "size": "1MB"},
        "protocols": ["reno"],
        "sweep": {
            "path.delay": [f"{n}us" for n in range(1_000, 1_000 + delays)],
            "workload.size": [f"{n}kB" for n in range(1_000, 1_000 + sizes)],
        },
        **changes,
    }


def mixed() -> Data:
    """Two worlds, expressions, keys that move together, a table with a key in it, a protocol's own key."""
    data = study(3, 4, worlds=["sim", "relay"])
    data["protocols"] = ["go-back-n", {"name": "sr", "kind": "selective-repeat"}]
    data["path"]["queue"] = "2BDP"
    data["sweep"] = {
        "path.delay, workload.size": [["1ms", "10kB"], ["2ms", "2 * 20kB"], ["3ms", "3BDP"]],
        "path.reverse.loss": ["1%", "2%"],
        "path.reverse": [{"rate": "1Mbit/s"}, {"rate": "2Mbit/s", "loss": "9%"}],
        "protocols.sr.window": [4, 8, 16],
    }
    return data


def test_cells_that_are_not_kept_are_equal_to_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = load_study(mixed())
    every = list(cells(kept))
    assert cells(kept)[0] is every[0]
    monkeypatch.setattr(combinations, "KEPT", 2)
    made = cells(load_study(mixed()))
    assert made[0] is not made[0]
    assert list(made) == every
    assert made == cells(kept)
    assert made != cells(load_study(study(3, 4)))
    assert [made[at] for at in (-1, 5, 3)] == [every[at] for at in (-1, 5, 3)]
    assert made[2:9:3] == every[2:9:3]
    assert len(made) == len(every) == 2 * (3 * 2 * 2 + 3 * 2 * 2 * 3)
    with pytest.raises(IndexError):
        made[len(made)]
    assert [cell.protocol for cell in every[:3]] == ["go-back-n", "sr", "go-back-n"]
    # Tables are set before the keys inside them.
    assert {cell.spec["path"]["reverse"]["loss"] for cell in every} == {"1%", "2%"}


def test_points_are_those_of_the_product_with_whole_copies() -> None:
    base = {"path": {"rate": "1Mbit/s", "reverse": {}}, "workload": {"size": "1kB"}, "protocol": {}}
    swept = [
        Swept("a", [(n, [("path.reverse.loss", f"{n}%"), ("workload.size", f"{n}kB")]) for n in (1, 2)]),
        Swept("b", [(n, [("path.loss", {"kind": "every", "every": n})]) for n in (3, 4, 5)]),
    ]
    found = [(point.params, point.spec) for point in Points(base, swept)]
    wanted = []
    for values in itertools.product(*(one.values for one in swept)):
        spec = copy.deepcopy(base)
        for _, placed in values:
            for key, value in placed:
                place(spec, key, copy.deepcopy(value))
        wanted.append(({one.key: shown for one, (shown, _) in zip(swept, values, strict=True)}, spec))
    assert found == wanted
    assert base["path"] == {"rate": "1Mbit/s", "reverse": {}}


def test_cells_share_equal_sections() -> None:
    every = cells(load_study(study(2, 2)))
    assert every[0].spec["path"] is every[1].spec["path"]
    assert every[0].spec["workload"] is every[2].spec["workload"]
    assert every[0].spec["protocol"] is every[3].spec["protocol"]


def test_texts_and_keys_are_those_of_the_whole_specification() -> None:
    texts, keys = SpecTexts(), CellKeys(7, "1")
    for cell in cells(load_study(mixed())):
        assert texts.of(cell.spec) == canonical(cell.spec)
        assert keys.of(cell) == cell_key(cell, 7, "1")


def test_claims_compare_only_cells_with_equal_values(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bool] = []
    are_same = selection._are_same

    def counted(one: Cell, other: Cell) -> bool:
        compared.append(are_same(one, other))
        return compared[-1]

    monkeypatch.setattr(selection, "_are_same", counted)
    claim = {"id": "a", "text": "A", "metric": "goodput", "of": "sr", "against": "gbn", "relation": "higher"}
    many = study(20, 10, claims=[claim])
    many["protocols"] = [{"name": "gbn", "kind": "go-back-n"}, {"name": "sr", "kind": "selective-repeat"}]
    many["sweep"]["protocols.sr.window"] = [4, 8]
    loaded = load_study(many, checked=True)
    pairs = selection.pairings(loaded.claims[0], "sim", cells(loaded))
    assert len(compared) == len(pairs) == 20 * 10 * 2
    assert all(pair.against and pair.against.params.items() <= pair.of.params.items() for pair in pairs)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(StudyError, match=f"1001000 cells are too many: at most {MAX_CELLS}"):
        load_study(study(1_000, 1_001))


def test_a_mistake_at_one_of_many_points_is_found() -> None:
    many = study(200, 100)
    many["sweep"]["path.delay"][150] = "fast"
    with pytest.raises(StudyError, match='"fast"'):
        load_study(many)
    many = study(150, 100)
    many["path"]["queue"] = "1MB / (path.delay / 1us - 1100)"
    with pytest.raises(StudyError, match="division by zero"):
        load_study(many)


def planned(delays: int, sizes: int) -> int:
    """Loads and plans a study, and returns the number of its cells."""
    loaded = load_study(study(delays, sizes))
    every = cells(loaded)
    found = plan(every, [1] * len(every), loaded.seed, "1", Present()).missing
    assert len({group.cell_key for group in found.groups}) == len(found) == delays * sizes
    assert found[-1].spec["workload"]["size"] == f"{999 + sizes}kB"
    return len(found)


def test_cells_of_large_studies_are_not_kept() -> None:
    tracemalloc.start()
    try:
        count = planned(110, 100)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Sections and texts that are kept take up to this much, for any number of cells.
    assert most < 60_000_000 + BYTES_PER_CELL * count


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_cells_are_planned_in_bounded_memory() -> None:
    program = (
        "import resource\n"
        "from tests.study.test_combinations import planned\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = planned(400, 250)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(count, 1024 * (after - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, used = map(int, done.stdout.split())
    assert count == 100_000
    assert used < 60_000_000 + BYTES_PER_CELL * count
