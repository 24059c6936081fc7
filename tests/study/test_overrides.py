from __future__ import annotations

import tomllib
from typing import Any

import pytest

from longfat.study import Overrides, Study, StudyError, cells, load_study, read_setting

Data = dict[str, Any]


def with_set(data: Data, *settings: str) -> Study:
    return load_study(data, Overrides(tuple(map(read_setting, settings))))


def test_a_setting_replaces_a_value_of_the_file(data: Data) -> None:
    study = with_set(
        data, "path.delay=20ms", "repeats=9", "protocols.sr.window=8", 'title="Another"', "workload.size=1MB"
    )
    assert (study.network["path"]["delay"], study.repeats, study.title) == ("20ms", 9, "Another")
    assert [entry.settings["window"] for entry in study.protocols] == [4, 8]
    assert study.workload["size"] == "1MB"


def test_a_setting_removes_a_key_from_the_sweep(data: Data) -> None:
    study = with_set(data, "path.loss=2%")
    assert study.sweep == {}
    assert study.network["path"]["loss"] == "2%"
    assert len(cells(study)) == 2


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (Overrides(repeats=0), "--repeats: repeats: "),
        (Overrides(seed=-1), "--seed: seed: "),
        (Overrides(precision="5"), "--precision: precision: "),
        (Overrides(worlds=("mars",)), "--world: worlds"),
        (Overrides(repeats=0, label="settings"), "repeats: repeats: "),
        (Overrides((("repeats", 0),)), "--set: repeats: "),
    ],
)
def test_a_wrong_option_is_named_in_the_message(data: Data, overrides: Overrides, line: str) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(data, overrides)
    assert str(caught.value).startswith(line)


def test_a_list_becomes_a_sweep(data: Data) -> None:
    study = with_set(data, 'path.loss=["1%", "2%"]', "protocol.window=[2, 4]")
    assert study.sweep == {"path.loss": ["1%", "2%"], "protocol.window": [2, 4]}


def test_a_setting_applies_to_all_protocols(data: Data) -> None:
    data["sweep"] = {"protocols.sr.window": [1, 2], "protocols.sr.rto": ["100ms", "200ms"]}
    data["claims"] = []
    study = with_set(data, "protocol.window=6")
    assert [entry.settings["window"] for entry in study.protocols] == [6, 6]
    assert list(study.sweep) == ["protocols.sr.rto"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("pth.loss=2%", '^--set: pth.loss: unknown key: .*did you mean "path"'),
        ("repeets=2", '^--set: repeets: unknown key: did you mean "repeats"'),
        ("protocols.x.window=2", '^--set: protocols.x.window: "x" is not a protocol'),
        ("topology.loss=2%", r"^--set: topology.loss: this study has no \[topology\] but a \[path\]"),
        ("protocols.window=2", '^--set: protocols.window: .*for all of them, write "protocol.window"'),
        ("path=2%", "^--set: path: has no key"),
        ("path.rate.x=2%", "^--set: path.rate.x: .*is not a table"),
        ("path.loss=200%", "^--set: path.loss: .*200%"),
        ("path.los=2%", "^--set: path.los: .*"),
        (
            "path.loss.probability=2%",
            "^--set: path.loss.probability: the study sweeps path.loss: set that key",
        ),
        ('path.loss=["1%", "200%"]', '^--set: sweep."path.loss": .*200%'),
        ("protocol.window=0", "^--set: protocols.gbn.window: .*\n--set: protocols.sr.window: "),
        ("repeats=none", "^--set: repeats: .*must be a whole number"),
        ("seed=2026-01-01", "^--set: seed: .*date"),
    ],
)
def test_a_wrong_setting_is_an_error_with_its_key(data: Data, setting: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        with_set(data, setting)


def test_one_protocol_cannot_leave_a_sweep_of_all(data: Data) -> None:
    data["sweep"] = {"protocol.window": [1, 2]}
    with pytest.raises(StudyError, match=r"sweeps protocol\.window for all protocols"):
        with_set(data, "protocols.sr.window=3")


def test_explicit_settings_override_quick(data: Data) -> None:
    data |= {"repeats": 100, "precision": "5%"}
    study = load_study(data, Overrides(quick=True))
    assert (study.repeats, study.precision) == (20, None)
    again = load_study(data, Overrides(repeats=5, quick=True))
    assert (again.trials_in("sim"), again.trials_in("relay")) == (5, 5)


def test_the_text_is_the_study_as_run(data: Data) -> None:
    study = load_study(data, Overrides((("path.loss", "2%"),), ("relay",), 5, 11))
    again = load_study(tomllib.loads(study.text))
    assert again == study
    assert (again.worlds, again.repeats, again.seed) == (["relay"], 5, 11)


def test_claims_about_a_sweep_survive_its_narrowing(data: Data) -> None:
    data["claims"][0]["where"] = {"path.loss": ">=5%"}
    study = with_set(data, "path.loss=1%")
    assert len(study.claims) == 1
    # The study file in the run's folder loads.
    assert load_study(study).claims == study.claims


@pytest.mark.parametrize("text", ["path.loss", "=2%", ""])
def test_a_setting_without_key_or_value_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=f'^--set: "{text}": write KEY=VALUE'):
        read_setting(text)


def test_settings_of_the_caller_stay_unchanged(data: Data) -> None:
    path = {"hops": [{"rate": "1Mbit/s"}, {"rate": "2Mbit/s"}]}
    data |= {"sweep": {}, "claims": []}
    overrides = Overrides((("path", path), ("path.hops.2.rate", "3Mbit/s"), ("protocol.rto", {"kind": "x"})))
    with pytest.raises(StudyError):
        load_study(data, overrides)
    study = load_study(data, Overrides(overrides.settings[:2]))
    assert study.path == {"hops": [{"rate": "1Mbit/s"}, {"rate": "3Mbit/s"}]}
    assert path["hops"][1] == {"rate": "2Mbit/s"}


def test_a_whole_path_reports_the_sweeps_that_it_replaces(data: Data) -> None:
    data |= {"claims": []}
    assert load_study(data, Overrides((("path", {"delay": "1ms"}),))).dropped_sweeps == ["path.loss"]
    both = Overrides((("path", {"delay": "1ms"}), ("path.loss", ["1%"])))
    assert load_study(data, both).dropped_sweeps == []
    assert load_study(data, Overrides((("path.loss", "1%"),))).dropped_sweeps == []


def test_messages_name_the_origin_of_settings(data: Data) -> None:
    for key, value in (("path.dealy", "2ms"), ("pth.delay", "2ms"), ("path.rate.x", 1)):
        with pytest.raises(StudyError, match=f"^settings: {key}: "):
            load_study(data, Overrides(((key, value),), label="settings"))


@pytest.mark.parametrize("name", ["a b", "", "-a", "ä"])
def test_an_invalid_name_reports_the_allowed_characters(data: Data, name: str) -> None:
    data["protocols"][0]["name"] = name
    with pytest.raises(StudyError, match="is not a valid name: use letters, digits, - and _"):
        load_study(data)
