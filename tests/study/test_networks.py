"""Studies of several hosts: sections, sweeps, overrides and mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from longfat.results.run import Cell
from longfat.study import Overrides, StudyError, cells, load_study, read_setting
from longfat.study.schema import study_schema

Data = dict[str, Any]


@pytest.fixture
def shared() -> Data:
    """A study of two senders that share a bottleneck with other traffic."""
    return {
        "title": "Who yields?",
        "topology": {
            "kind": "dumbbell",
            "pairs": 2,
            "bottleneck": {"rate": "10Mbit/s", "queue": {"kind": "drop-tail", "limit": "50pkt"}},
            "access": [{"rate": "20Mbit/s"}, {"rate": "30Mbit/s"}],
        },
        "workload": {"kind": "bulk", "duration": "5s"},
        "protocols": [
            {"name": "reno", "kind": "tcp", "congestion": "reno"},
            {"name": "vegas", "kind": "tcp", "congestion": "vegas"},
        ],
        "traffic": [
            {
                "name": "rival",
                "protocol": {"kind": "tcp", "congestion": "reno"},
                "workload": {"kind": "bulk", "from": "s2", "to": "r2"},
            }
        ],
    }


def complaint(data: Data, *settings: str) -> str:
    with pytest.raises(StudyError) as caught:
        load_study(data, Overrides(tuple(map(read_setting, settings))))
    return str(caught.value)


def test_every_kind_of_key_can_be_swept(shared: Data) -> None:
    shared["sweep"] = {
        "topology.bottleneck.queue.kind": ["drop-tail", "codel"],
        "topology.access.2.rate": ["5Mbit/s"],
        "traffic.rival.workload.flows": [1, 3],
        "protocols.vegas.congestion.alpha": [1, 2],
    }
    found = cells(load_study(shared))
    assert len(found) == 2 * 2 * (1 + 2)
    last = found[-1]
    assert last.spec["topology"]["access"] == [{"rate": "20Mbit/s"}, {"rate": "5Mbit/s"}]
    assert last.spec["topology"]["bottleneck"]["queue"] == {"kind": "codel", "limit": "50pkt"}
    assert last.spec["traffic"][0]["workload"]["flows"] == 3
    assert last.spec["protocol"]["congestion"] == {"kind": "vegas", "alpha": 2}
    assert (last.value("traffic.rival.workload.from"), last.value("topology.access.1.rate")) == (
        "s2",
        "20Mbit/s",
    )
    # The study itself is unchanged.
    assert shared["protocols"][1]["congestion"] == "vegas"


def test_a_controller_and_its_settings_are_swept_together(shared: Data) -> None:
    """The short form applies before the keys of its table, in any order of the sweep."""
    shared["protocols"] = shared["protocols"][1:]
    shared["sweep"] = {"protocol.congestion.alpha": [1, 2], "protocol.congestion": ["vegas"]}
    assert [c.spec["protocol"]["congestion"] for c in cells(load_study(shared))] == [
        {"kind": "vegas", "alpha": 1},
        {"kind": "vegas", "alpha": 2},
    ]


def test_settings_reach_every_kind_of_key(shared: Data) -> None:
    settings = (
        "topology.access.1.rate=7Mbit/s",
        "topology.bottleneck.rate=3Mbit/s",
        "traffic.rival.protocol.congestion=cubic",
        "protocols.vegas.congestion.beta=9",
        "workload.flows=2",
    )
    (reno, vegas) = cells(load_study(shared, Overrides(tuple(map(read_setting, settings)))))
    assert reno.spec["topology"]["access"][0] == {"rate": "7Mbit/s"}
    assert reno.spec["topology"]["bottleneck"]["rate"] == "3Mbit/s"
    assert reno.spec["traffic"][0]["protocol"]["congestion"] == "cubic"
    assert vegas.spec["protocol"]["congestion"] == {"kind": "vegas", "beta": 9}
    assert vegas.spec["workload"]["flows"] == 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "path.rate=1Mbit/s",
            r'--set: path.rate: this study has no \[path\] but a \[topology\]: write e.g. "topology.KEY"',
        ),
        ("topology.access.3.rate=1Mbit/s", '"3" is not an entry of the list; allowed: 1 to 2'),
        ("traffic.rivla.workload.flows=2", 'not a traffic of this study; .*did you mean "rival"'),
        ("topology.bottleneck.rate=fast", '--set: topology.bottleneck.rate: .*"fast"'),
        ("topology.botleneck.rate=1Mbit/s", "--set: topology.botleneck: .*bottleneck"),
        ("traffic.rival.protocol.congestion=reeno", '--set: traffic.rival.protocol.congestion: .*"reeno"'),
        ("traffic.rival.workload.flows=0", "--set: traffic.rival.workload.flows: 0 is out of range"),
        ("protocols.vegas.congestion.alfa=1", "--set: protocols.vegas.congestion.alfa: unknown key .*alpha"),
        ("protocols.vegas.alpha=1", "vegas.alpha: unknown key: it is a key of congestion; allowed: kind"),
        ("topology.warm_up=1s", "topology.warm_up: unknown key: it is a key of workload; allowed: "),
        ("workload.warm_up=6s", "--set: workload.warm_up: .*leaves nothing to measure"),
        ('topology.access.2.rate=["1Mbit/s", "quick"]', '--set: sweep."topology.access.2.rate": .*"quick"'),
    ],
)
def test_a_mistake_names_its_key(shared: Data, setting: str, words: str) -> None:
    import re

    assert re.search(words, complaint(shared, setting)), complaint(shared, setting)


def test_traffic_without_a_name_in_the_sweep_is_no_root(shared: Data) -> None:
    del shared["traffic"]
    assert '"traffic" is not a section of this study' in complaint(
        shared | {"sweep": {"traffic.x.flows": [1]}}
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "supports a [path] only"),
        (
            {"topology": None, "path": {"rate": "1Mbit/s"}, "traffic": None},
            "ARQ protocols and QUIC only, not TCP (protocol.kind of reno)",
        ),
        (
            {
                "topology": None,
                "path": {"rate": "1Mbit/s"},
                "protocols": [{"name": "sr", "kind": "selective-repeat"}],
            },
            "supports no [[traffic]]",
        ),
        (
            {
                "topology": None,
                "path": {"rate": "1Mbit/s"},
                "traffic": None,
                "protocols": [{"name": "sr", "kind": "selective-repeat"}],
            },
            'supports files only, not "bulk"',
        ),
    ],
)
def test_the_relay_rejects_unsupported_studies_in_one_line(shared: Data, changes: Data, words: str) -> None:
    data = {key: value for key, value in (shared | changes).items() if value is not None}
    lines = complaint(data | {"worlds": ["sim", "relay"]}).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith('study: worlds: "relay" cannot run this study: the relay supports ')
    assert words in lines[0]


def test_the_schema_covers_all_sections() -> None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(study_schema())
    good: Data = {
        "title": "t",
        "topology": {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "1Mbit/s"}},
        "workload": {"kind": "bulk", "duration": "1s"},
        "protocols": [{"name": "a", "kind": "tcp", "congestion": {"kind": "vegas", "alpha": 1}}],
        "traffic": [{"name": "x", "protocol": {"kind": "tcp"}, "workload": {"kind": "bulk"}}],
        "sweep": {"topology.bottleneck.rate": ["1Mbit/s"], "traffic.x.workload.flows": [1]},
        "show": ["goodput", "jain"],
    }
    assert list(validator.iter_errors(good)) == []
    mistakes: tuple[Data, ...] = (
        {"path": {}},
        {"topology": {"kind": "dumbell"}},
        {"topology": {"kind": "dumbbell", "bottleneck": {"rat": "1Mbit/s"}}},
        {"traffic": [{"protocol": {"kind": "tcp"}, "workload": {"kind": "bulk"}}]},
        {"protocols": [{"name": "a", "kind": "tcp", "windows": 1}]},
    )
    for wrong in mistakes:
        assert list(validator.iter_errors(good | wrong)), wrong


def test_cells_without_traffic_have_no_traffic_key(data: Data) -> None:
    cell: Cell = cells(load_study(data))[0]
    assert list(cell.spec) == ["path", "protocol", "workload"]
