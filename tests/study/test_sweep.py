from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.results.run import Cell
from longfat.results.trial import cell_key
from longfat.study import StudyError, cells, load_study
from longfat.study.keys import place
from longfat.study.sweep import values

Data = dict[str, Any]


def test_every_combination_for_every_protocol_and_world(data: Data) -> None:
    data["worlds"] = ["sim", "relay"]
    data["sweep"]["path.delay"] = {"from": "10ms", "to": "30ms", "step": "10ms"}
    found = cells(load_study(data))
    assert len(found) == 2 * 2 * 3 * 3
    assert len({(c.world, c.protocol, str(c.params)) for c in found}) == len(found)
    assert all(c.spec["path"]["loss"] == c.params["path.loss"] for c in found)
    assert [c.protocol for c in found[:2]] == ["gbn", "sr"]
    assert found[0].params == found[1].params


def test_a_key_of_one_protocol_sweeps_only_that_one(data: Data) -> None:
    data["sweep"] = {"protocols.sr.window": [1, 2, 4]}
    found = cells(load_study(data))
    assert [(c.protocol, c.params) for c in found] == [
        ("gbn", {}),
        ("sr", {"protocols.sr.window": 1}),
        ("sr", {"protocols.sr.window": 2}),
        ("sr", {"protocols.sr.window": 4}),
    ]
    assert [c.spec["protocol"]["window"] for c in found] == [4, 1, 2, 4]
    assert found[1].value("protocol.window") == 1


def test_a_key_of_all_protocols_sweeps_all(data: Data) -> None:
    data["sweep"] = {"protocol.window": [1, 2]}
    assert [c.spec["protocol"]["window"] for c in cells(load_study(data))] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({"path.los": ["1%"]}, 'unknown key "los"|path.los'),
        ({"pth.loss": ["1%"]}, '"pth" is not a section of this study; did you mean "path"'),
        ({"protocols.srr.window": [1]}, '"srr" is not a protocol of this study; did you mean "sr"'),
        ({"protocols.window": [1]}, 'for all of them, write "protocol.window"'),
        ({"topology.loss": ["1%"]}, r'this study has no \[topology\] but a \[path\]: write e.g. "path.KEY"'),
        ({"path": ["1%"]}, "has no key"),
        ({"path.loss": []}, "is empty"),
        ({"path.loss": "2%"}, "must be a list"),
        ({"path.loss": ["1%", "1%"]}, "is repeated"),
        ({"path.loss": {"from": "1%", "to": "5%"}}, 'requires the key "step"'),
        ({"path.loss": {"from": "1%", "to": "5%", "stepp": "1%"}}, 'did you mean "step"'),
        ({"path.loss": ["1%", "200%"]}, "200%"),
        ({"path.rate.burst": ["1%"]}, "is not a table"),
        ({"protocol.window": [1], "protocols.sr.window": [2]}, "sets the same"),
        (
            {
                "path.delay": {"from": "0ns", "to": "9999ns", "step": "1ns"},
                "path.loss": {"from": "0%", "to": "99%", "step": "1%"},
            },
            "too many",
        ),
    ],
)
def test_a_wrong_sweep_is_an_error_with_its_reason(data: Data, sweep: Data, words: str) -> None:
    data["sweep"] = sweep
    data["claims"] = []
    with pytest.raises(StudyError, match=words):
        load_study(data)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20, unique=True))
def test_a_list_is_unchanged(listed: list[int]) -> None:
    assert values(listed) == listed


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.integers())
def test_a_placed_value_is_found_there(parts: list[str], value: int) -> None:
    spec: Data = {}
    place(spec, ".".join(parts), value)
    found: Any = spec
    for part in parts:
        found = found[part]
    assert found == value


SPECS = st.fixed_dictionaries(
    {
        "path": st.dictionaries(st.sampled_from(["rate", "delay", "loss"]), st.sampled_from(["1ms", "2%"])),
        "protocol": st.dictionaries(st.sampled_from(["kind", "window"]), st.integers(1, 9)),
    }
)


@given(SPECS, st.integers(0, 2**63 - 1))
def test_a_key_follows_from_content_not_from_order(spec: Data, seed: int) -> None:
    turned = {key: dict(reversed(list(inner.items()))) for key, inner in reversed(list(spec.items()))}
    one, other = Cell("sim", "a", {}, spec), Cell("sim", "b", {"path.loss": "2%"}, turned)
    assert cell_key(one, seed, "1") == cell_key(other, seed, "1")


def test_everything_that_affects_a_record_changes_the_key() -> None:
    worlds, windows, seeds, versions = ["sim", "relay"], [1, 2], [1, 2], ["1", "2"]
    keys = {
        cell_key(Cell(world, "a", {}, {"protocol": {"window": window}}), seed, version)
        for world, window, seed, version in itertools.product(worlds, windows, seeds, versions)
    }
    assert len(keys) == 16


def test_keys_are_stable() -> None:
    # Keys identify stored trials: a change of this value invalidates all stores.
    cell = Cell(
        "sim", "sr", {}, {"path": {"loss": "2%"}, "protocol": {"kind": "selective-repeat", "window": 4}}
    )
    assert cell_key(cell, 1, "0.1.0") == "b819e1bac0e13d3c59d944cec6a821dc"
