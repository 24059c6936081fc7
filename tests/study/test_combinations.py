"""Cells of large studies: made when they are read, equal to those of small ones, in bounded memory."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.runs import run_study

from longfat import _native
from longfat.results.trial import CellKeys, cell_key
from longfat.runner.runner import check_trials
from longfat.store import planning
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.study import Study, StudyError, cells, combinations, load_study, section_texts, selection
from longfat.study.cell import Cell
from longfat.study.combinations import Points, SpecTexts, Swept
from longfat.study.expressions import settings
from longfat.study.keys import place
from longfat.study.sweep import MAX_CELLS, _concerns, _labelled, _settings, points_of, specification
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


def swept_files(folder: Path) -> Data:
    """Files and classes among swept values, entries of lists, keys inside tables that other keys bring."""
    for name in ("a.trace", "b.trace"):
        (folder / name).write_text(f"{len(name)}\n{ord(name[0])}\n")
    (folder / "mine.py").write_text("class Mine:\n    pass\n")
    data = study(2, 2)
    data["path"] = {"delay": "1ms", "trace": str(folder / "a.trace"), "reverse": {"rate": "1Mbit/s"}}
    data["protocols"] = [{"name": "a", "kind": "tcp", "congestion": "reno"}]
    data["traffic"] = [
        {"name": "rival", "protocol": {"kind": "tcp"}, "workload": {"kind": "bulk", "rate": "1Mbit/s"}}
    ]
    data["sweep"] = {
        "path.trace": [str(folder / "a.trace"), str(folder / "b.trace")],
        "path.reverse.trace_start, path.delay": [["1s", "1ms"], ["2s", "2ms"]],
        "protocol.congestion": ["cubic", f"{folder / 'mine.py'}:Mine", {"kind": "vegas", "alpha": 2}],
        "traffic.rival.workload.rate": ["2Mbit/s", "3Mbit/s"],
        "traffic.1.protocol.congestion": ["reno", "cubic"],
        "workload.size": ["1kB", 'quoted "text"', "\u00e4"],
    }
    return data


def test_keys_in_bulk_are_those_of_single_cells(tmp_path: Path) -> None:
    for data in (mixed(), swept_files(tmp_path), study(3, 4, worlds=["sim", "relay"])):
        every = cells(Study.model_validate(data))
        keys = CellKeys(7, "1")
        single = [cell_key(cell, 7, "1") for cell in every]
        assert keys.texts_of_all(every) == keys.texts_of_all(list(every)) == single
        assert len(set(single)) > 1


def test_a_plan_has_one_group_for_equal_cells() -> None:
    data = study(2, 3, protocols=[{"name": "a", "kind": "tcp"}, {"name": "b", "kind": "tcp"}, "cubic"])
    every = cells(load_study(data))
    counts = [1 + number % 5 for number in range(len(every))]
    found = plan(every, counts, 1, "1", Present())
    wanted: dict[str, tuple[int, int]] = {}
    for at, (cell, count) in enumerate(zip(every, counts, strict=True)):
        key = cell_key(cell, 1, "1")
        first, most = wanted.get(key, (at, 0))
        wanted[key] = first, max(most, count)
    groups = [(group.cell_key, (group.at, len(group))) for group in found.missing.groups]
    assert groups == list(wanted.items())
    assert len(groups) < len(every)
    assert found.present == {"sim": 0}


class Calls:
    """Counts calls of functions whose number may not grow with the cells."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for owner, name in (
            (Points, "at"),
            (combinations.Cells, "_made"),
            (Points, "_made"),
            (settings, "values"),
            (section_texts, "canonical"),
            (planning, "CellTrials"),
            *((_native, name) for name in ("check", "check_trial", "unsupported", "first_refused")),
        ):
            self._count(monkeypatch, owner, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return function(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)


@pytest.mark.parametrize(
    "swept",
    [
        {"path.delay": 300, "workload.size": 100},
        {"path.delay": 300, "path.queue": 100},
        {"path.delay": 30, "path.queue": 10, "workload.size": 100},
    ],
)
def test_loading_and_planning_make_no_single_cell(
    monkeypatch: pytest.MonkeyPatch, swept: dict[str, int]
) -> None:
    calls = Calls(monkeypatch)
    units = {"path.delay": "us", "path.queue": "kB", "workload.size": "kB"}
    data = study(1, 1)
    data["workload"] = (
        {"kind": "bulk", "duration": "10s"} if "workload.size" not in swept else data["workload"]
    )
    data["sweep"] = {key: [f"{n + 10}{units[key]}" for n in range(count)] for key, count in swept.items()}
    loaded = load_study(data)
    every = cells(loaded)
    found = plan(every, [1] * len(every), loaded.seed, "1", Present()).missing
    check_trials(found, every)
    assert len(found) == len(every) == 30_000
    # The sum of the swept values, not their product: texts for the checks and for the keys.
    assert calls.counts["canonical"] <= 4 * sum(swept.values()) + 20
    # Three chunks of cells in one world, once for the world and once for the network and hosts.
    assert calls.counts["first_refused"] <= 8
    most = max(calls.counts[name] for name in ("at", "_made", "values", "CellTrials"))
    assert most <= sum(swept.values()) + 20
    assert calls.counts["check"] + calls.counts["check_trial"] + calls.counts["unsupported"] <= 20


@pytest.mark.parametrize(
    ("key", "expression"),
    [("path.queue", "1BDP"), ("workload.size", "path.rate * 1s"), ("path.mtu", "1500B + 4B")],
)
def test_expressions_are_evaluated_once_for_equal_values(
    monkeypatch: pytest.MonkeyPatch, key: str, expression: str
) -> None:
    calls = Calls(monkeypatch)
    data = study(1, 1)
    data["sweep"] = {
        "path.delay": [f"{n}ms" for n in range(1, 11)],
        "workload.flows": list(range(1, 101)),
        "protocol.congestion": ["reno", "cubic", "vegas"],
    }
    section, _, inner = key.partition(".")
    data[section][inner] = expression
    every = cells(load_study(data))
    # RTT and BDP depend on the path.
    assert calls.counts["values"] <= (12 if "BDP" in expression else 4)
    assert every[-1].computed[key][0] == expression


def expressions_of_all_kinds() -> Data:
    data = study(1, 1)
    del data["path"]
    data["topology"] = {
        "kind": "dumbbell",
        "pairs": 2,
        "bottleneck": {"rate": "10Mbit/s", "delay": "10ms", "queue": "1BDP"},
        "access": [{"rate": "1Gbit/s", "delay": "1ms"}, {"rate": "1Gbit/s", "delay": "20ms"}],
    }
    data["workload"] = {"kind": "bulk", "duration": "20RTT", "from": "s1", "to": "r1", "flows": 2}
    data["protocols"] = [{"name": "a", "kind": "tcp"}, {"name": "b", "kind": "tcp"}]
    data["traffic"] = [
        {
            "name": "rival",
            "protocol": {"kind": "udp"},
            "workload": {"kind": "bulk", "rate": "topology.bottleneck.rate / 10 / workload.flows"},
        }
    ]
    data["sweep"] = {
        "topology.bottleneck.queue": ["1BDP", "20kB", {"kind": "drop-tail", "limit": "2BDP"}],
        "workload.from, workload.to": [["s1", "r1"], ["s2", "r2"]],
        "topology.access.2.delay": ["20ms", "40ms"],
        "workload.flows": [1, 3],
        "protocols.b.mss": ["1000B", "100B * 12"],
        "traffic.1.workload.flows": [1, 2],
    }
    return data


def test_values_of_expressions_are_those_of_each_whole_specification() -> None:
    data = expressions_of_all_kinds()
    study = Study.model_validate(data)
    for entry in study.protocols:
        base = specification(study, entry)
        points = points_of(study, entry)
        swept = [
            (key, [value for _, value in _labelled(listed)])
            for key, listed in study.sweep.items()
            if _concerns(key, entry.name)
        ]
        for number, chosen in enumerate(itertools.product(*(values for _, values in swept))):
            spec = copy.deepcopy(base)
            placed = [
                one
                for (key, _), value in zip(swept, chosen, strict=True)
                for one in _settings(key, value, entry.name)
            ]
            for key, value in sorted(placed, key=lambda setting: setting[0].count(".")):
                place(spec, key, copy.deepcopy(value))
            wanted = settings.resolved(spec, entry.name)
            assert points[number].spec == wanted.spec
            assert points[number].computed == wanted.values


def test_a_mistake_in_one_cell_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    data = study(40, 50)
    data["workload"] |= {"from": "sender", "to": "receiver"}
    data["sweep"]["workload.to"] = ["receiver", "nobody"]
    with pytest.raises(ValueError, match=r"reno \(.*workload.to = nobody\): workload.to: there is no host"):
        run_study(load_study(data), folder=tmp_path / "run")


@pytest.mark.parametrize("at", [0, 77, 199])
def test_a_world_that_cannot_run_one_cell_is_refused(at: int) -> None:
    data = study(200, 1, workload={"kind": "bulk", "duration": "1s"})
    data["protocols"] = [{"name": "a", "kind": "tcp"}]
    kinds = [{"label": str(n), "value": "kernel" if n == at else "longfat"} for n in range(200)]
    data["sweep"] = {"path.delay": data["sweep"]["path.delay"], "protocol.stack": kinds}
    with pytest.raises(StudyError, match='"sim" cannot run this study: "kernel" requires the world netns'):
        load_study(data)


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
