from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longfat.study import StudyError, builtin, load_study

Data = dict[str, Any]
Write = Callable[..., Path]


def complaint(source: Any) -> str:
    with pytest.raises(StudyError) as caught:
        load_study(source)
    return str(caught.value)


def change(data: Data, key: str, value: Any) -> Data:
    table: Any = data
    *parents, last = key.split(".")
    for parent in parents:
        table = table[int(parent) if parent.isdigit() else parent]
    table[last] = value
    return data


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("repeat", 3, 'repeat: unknown key: did you mean "repeats". allowed: extends, title, source'),
        ("title", 3, "title: 3: must be text in quotes"),
        ("title", "", "title: is empty"),
        ("repeats", 0, "repeats: 0 is too small: at least 1"),
        ("repeats", 10**9, "repeats: 1000000000 is too large: at most 1000000"),
        ("repeats", "many", 'repeats: "many": must be a whole number'),
        ("repeats", True, "repeats: true: must be a whole number"),
        ("repeats", 2.5, "repeats: 2.5: must be a whole number"),
        ("seed", -1, "seed: -1 is too small: at least 0"),
        ("worlds", ["sin"], 'worlds: "sin" is not a world; did you mean "sim". allowed: sim, relay, netns'),
        ("worlds", [], "worlds: is empty"),
        ("worlds", "sim", 'worlds: "sim": must be a list'),
        ("precision", "5", 'precision: "5" is not a percentage'),
        ("precision", "0%", "precision: .* above 0%"),
        ("path", "lan", 'path: "lan": must be a table'),
        ("path.dealy", "5ms", "path.dealy: .*delay"),
        ("path.delay", 5, "path.delay: "),
        ("path.loss", "102%", "path.loss: .*102%"),
        ("workload.size", "30", 'workload.*: "30" has no unit'),
        ("protocols", [], "protocols: is empty"),
        (
            "protocols.0.name",
            "sr",
            r"protocols\[sr\].name: 2 protocols are named \"sr\"; names",
        ),
        ("protocols.0.name", "a b", r"protocols\[a b\].name: "),
        ("protocols.0.window", 0, "protocols.gbn.window: .*0"),
        ("protocols.0.windwo", 4, "protocols.gbn.windwo: .*window"),
        ("protocols.0.kind", "go-back", "protocols.gbn.kind: .*go-back-n"),
        (
            "claims.0.of",
            "srr",
            r'claims\[sr-not-behind\].of: "srr" is not a protocol of this study; .*did you mean "sr"',
        ),
        (
            "claims.0.metric",
            "goodputt",
            r'claims\[sr-not-behind\].metric: "goodputt" is not a metric; .*"goodput"',
        ),
        ("claims.0.by", "-5%", r'claims\[sr-not-behind\].by: "-5%" is negative'),
        ("claims.0.relation", "highr", r'relation: "highr" is not known; did you mean "higher"'),
        ("claims.0.relation", "rises-with", r'claims\[sr-not-behind\]: .* requires the key "along"'),
        ("claims.0.after", "5%", r"does not use the key \"after\""),
        ("claims.0.relation", "at-most", r'claims\[sr-not-behind\]: .* does not use the key "against"'),
        ("claims.0.value", "5Mbit/s", r"does not use the key \"value\""),
        ("claims.0.by", "5", r'by: "5" is not a percentage'),
        (
            "claims.0.where",
            {"path.dealy": "5ms"},
            r"where: \"path.dealy\" is neither swept nor set; .*allowed: path.loss",
        ),
        ("claims.0.where", {"path.delay": "6ms"}, r"matches no cell"),
        ("claims.0.where", {"path.loss": "77%"}, r"no cell of this study; path.loss is swept over 0%, "),
        ("claims.0.where", {"path.loss": ">=fast"}, r"path.loss: .*fast"),
        ("claims.0.where", {"path.loss": ">="}, "has no value to compare with"),
        (
            "claims.0.where",
            {"path.loss": ">=5ms"},
            r'where: "5ms" is a duration, but path.loss has "0%", a proportion: use the same unit$',
        ),
        ("claims.0.where", {"path.loss": "4"}, r'where: "4" is a number, but path.loss has "0%"'),
        (
            "reported",
            [{"protocol": "sr", "goodput": "1Mbit/s", "where": {"path.loss": "2ms..3ms"}}],
            r'reported\[1\].where: "2ms" is a duration',
        ),
        ("claims.0.colour", "red", r"claims\[sr-not-behind\].colour: unknown key: allowed: id, text"),
        (
            "reported",
            [{"protocol": "x", "goodput": "1Mbit/s"}],
            r"reported\[1\].protocol: \"x\" is not a protocol",
        ),
        ("reported", [{"protocol": "sr", "goodput": "1%"}], "neither a rate nor a time"),
        ("source", datetime.date(2026, 1, 1), "source: 2026-01-01: a date"),
        ("path.delay", float("nan"), "path.delay: nan is not a study value"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(
    data: Data, write: Write, key: str, value: Any, expected: str
) -> None:
    path = write(change(data, key, value))
    text = complaint(path)
    assert len(text.splitlines()) == 1, text
    assert re.match(rf"{re.escape(str(path))}(:\d+)?: ", text), text
    with pytest.raises(StudyError, match=expected):
        load_study(path)


@pytest.mark.parametrize("key", ["title", "workload", "protocols"])
def test_a_missing_key_is_named(data: Data, key: str) -> None:
    del data[key]
    assert f"{key}: is missing" in complaint(data)


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("goodput", "5ms", '"5ms" is a duration: goodput is given in bit/s'),
        ("timeouts", "5s", "given as a number"),
    ],
)
def test_a_limit_has_the_dimension_of_its_metric(data: Data, metric: str, value: str, words: str) -> None:
    level = {"id": "c", "text": "t", "of": "sr", "metric": metric, "relation": "at-most", "value": value}
    data["claims"] = [level]
    assert words in complaint(data)


@pytest.mark.parametrize("given", [[], ["path", "topology"]])
def test_a_study_has_one_network(data: Data, given: list[str]) -> None:
    del data["path"]
    message = complaint(data | {key: {} for key in given})
    assert "[path] (two hosts) and [topology] (several)" in message
    assert ("neither" in message) == (not given)


def test_traffic_names_are_unique(data: Data) -> None:
    data["traffic"] = [{"name": "x"}, {"name": "x"}]
    assert 'traffic[x].name: 2 entries are named "x"; names must be unique' in complaint(data)
    data["traffic"] = [{"protocol": {}}]
    assert "traffic[1].name: is missing" in complaint(data)


def test_values_that_every_cell_overrides_are_checked(data: Data) -> None:
    data["path"]["loss"] = "a little"
    assert "path.loss: " in complaint(data)


def test_all_mistakes_are_listed_one_per_line(data: Data) -> None:
    data["path"]["dealy"] = "5ms"
    data["protocols"][0]["window"] = 0
    data["claims"][0]["of"] = "srr"
    text = complaint(data)
    assert len(text.splitlines()) == 3, text


def test_a_swept_value_is_named_with_its_key(data: Data) -> None:
    data["sweep"]["path.loss"] = ["0%", "101%"]
    assert 'sweep."path.loss": ' in complaint(data)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"title = ", "is not TOML: "),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"title = 1\ntitle = 2\n", "is not TOML"),
        (b"a = " + b"[" * 50_000, "is not TOML"),
        (b"", "title: is missing"),
    ],
)
def test_a_broken_file_is_a_one_line_error(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=words):
        load_study(path)


def test_an_unknown_study_is_an_error(tmp_path: Path) -> None:
    assert "is neither a file nor a built-in study" in complaint(tmp_path / "nothing.toml")
    assert "is a folder" in complaint(tmp_path)


def test_names_come_from_file_or_title(data: Data, write: Write) -> None:
    assert load_study(write(data, "my-study.toml")).name == "my-study"
    assert load_study(data).name == "a-small-study"
    assert load_study(data, name="x").name == "x"


def test_a_file_names_protocols_like_the_python_api(tmp_path: Path) -> None:
    path = tmp_path / "names.toml"
    text = """title = "Names"
protocols = ["cubic", { kind = "go-back-n", window = 8 }]
path = { rate = "1Mbit/s" }
workload = { kind = "file", size = "1kB" }
traffic = { name = "x", protocol = "reno", workload = { kind = "bulk" } }
"""
    path.write_text(text)
    study = load_study(path)
    assert study.text == text
    assert [(entry.name, entry.settings) for entry in study.protocols] == [
        ("cubic", {"kind": "tcp", "congestion": "cubic"}),
        ("go-back-n", {"kind": "go-back-n", "window": 8}),
    ]
    assert study.traffic[0].settings["protocol"] == {"kind": "tcp", "congestion": "reno"}
    path.write_text(text.replace('"cubic"', '"cubicc"'))
    message = complaint(path)
    assert message.startswith(f"{path}:2: ")
    assert 'did you mean "cubic"' in message


def test_the_text_of_a_file_is_kept(tmp_path: Path, data: Data, write: Write) -> None:
    path = write(data)
    path.write_text("# why\n" + path.read_text())
    assert load_study(path).text == path.read_text()


def test_a_study_can_be_loaded_from_itself(data: Data) -> None:
    study = load_study(data)
    again = load_study(study)
    assert again == study
    assert again.name == study.name


def test_a_missing_relation_is_reported(data: Data) -> None:
    data["claims"][0]["relatoin"] = data["claims"][0].pop("relation")
    lines = complaint(data)
    assert 'did you mean "relation"' in lines
    assert "relation: is missing" in lines


@pytest.mark.parametrize("name", sorted(builtin()))
def test_built_in_studies_load_and_have_claims(name: str) -> None:
    study = load_study(name)
    assert study.name == name
    assert study.claims, "each study has claims"


def test_a_trace_is_relative_to_its_study_and_its_content_is_in_the_key(
    data: Data, write: Write, tmp_path: Path
) -> None:
    from longfat.results.trial import cell_key
    from longfat.study import cells

    (tmp_path / "rate.trace").write_text("1\n2\n5\n")
    del data["path"]["rate"]
    data["path"]["trace"] = "rate.trace"
    study = load_study(write(data))
    assert study.network["path"]["trace"] == str(tmp_path / "rate.trace")
    assert load_study(study).path == study.path
    cell = cells(study)[0]
    before = cell_key(cell, 1, "1")
    (tmp_path / "rate.trace").write_text("1\n2\n6\n7\n")
    assert cell_key(cell, 1, "1") != before


def test_a_table_of_sizes_is_relative_to_its_study_and_its_content_is_in_the_key(
    data: Data, write: Write, tmp_path: Path
) -> None:
    from longfat.results.trial import cell_key
    from longfat.study import cells

    sizes = tmp_path / "sizes.csv"
    sizes.write_text("1000,0.5\n2000,1\n")
    data["workload"] = {"kind": "arrivals", "arrivals": "10/s", "duration": "5s"}
    data["workload"] |= {"sizes": "table", "sizes_file": "sizes.csv"}
    for protocol in data["protocols"]:
        protocol.clear()
        protocol |= {"name": "tcp", "kind": "tcp"}
    data["protocols"] = data["protocols"][:1]
    data.pop("claims", None)
    data.pop("reported", None)
    study = load_study(write(data))
    cell = cells(study)[0]
    assert cell.spec["workload"]["sizes_file"] == str(sizes)
    before = cell_key(cell, 1, "1")
    sizes.write_text("1000,0.6\n2000,1\n")
    assert cell_key(cell, 1, "1") != before
