"""Messages about a study name file, line and key, and suggest the probable intention."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from longfat.study import Overrides, StudyError, load_study, path_model, units

STUDY = """\
# A study in which keys are written in every way that TOML has.
title = "Lines"
worlds = ["sim"]
workload = { kind = "file", size = "100kB" }

[path]
rate = "10Mbit/s"  # [[not]] a header
loss.model = "every"
loss.every = 50
queue = "100pkt"

[[protocols]]
name = "a"
kind = "tcp"

[[protocols]]
name = "b"
kind = "tcp"
[protocols.congestion]
kind = "vegas"
alpha = 2

[sweep]
"path.delay" = [
    "1ms",
    "2ms",
]

[[claims]]
id = "first"
text = \"\"\"
[sweep] of two
lines\"\"\"
metric = "goodput"
of = "a"
against = "b"
relation = "higher"

[[traffic]]
name = "rival"
protocol = { kind = "udp" }
[traffic.workload]
kind = "bulk"
rate = "1Mbit/s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    load_study(path)
    return path


def complaint(file: Path, old: str, new: str) -> str:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        load_study(file)
    return str(caught.value).replace(str(file.parent) + "/", "")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Lines"', "title = 3", "study.toml:2: title: 3: must be text"),
        ('size = "100kB"', 'size = "100k"', 'study.toml:4: workload.size: "100k" has'),
        ('rate = "10Mbit/s"', 'rte = "10Mbit/s"', 'study.toml:7: path.rte: unknown key.*"rate"'),
        ("loss.every = 50", "loss.every = 0", "study.toml:9: path.loss.every: .*0"),
        ('name = "b"\nkind = "tcp"', 'name = "b"\nkind = "tcpp"', "study.toml:18: protocols.b.kind: "),
        ("alpha = 2", "alpah = 2", "study.toml:21: protocols.b.congestion.alpah: "),
        ('    "2ms"', '    "2m"', 'study.toml:24: sweep."path.delay": "2m" has'),
        (
            'lines"""\nmetric',
            'lines"""\nmetrik = 3\nmetric',
            r"study.toml:34: claims\[first\].metrik: unknown key",
        ),
        ('against = "b"', 'against = "c"', r'study.toml:36: claims\[first\].against: "c" is no'),
        ('rate = "1Mbit/s"', 'rate = "1M"', "study.toml:44: traffic.rival.workload.rate: "),
        ('worlds = ["sim"]', "worlds = [", r"study.toml:\d+: is not TOML: "),
        ("alpha = 2", "alpha", "study.toml:21: is not TOML: "),
    ],
)
def test_a_mistake_has_its_line(file: Path, old: str, new: str, words: str) -> None:
    text = complaint(file, old, new)
    assert re.match(words, text), text
    assert len(text.splitlines()) == 1


def test_a_missing_key_has_the_line_of_its_table(file: Path) -> None:
    assert complaint(file, 'metric = "goodput"\n', "").startswith(
        "study.toml:29: claims[first].metric: is missing"
    )
    assert complaint(file, 'title = "Lines"\n', "").startswith("study.toml: title: is missing")


def test_keys_set_by_options_have_no_line(file: Path) -> None:
    with pytest.raises(StudyError, match=r"^--set: path\.rate: "):
        load_study(file, Overrides((("path.rate", "10"),)))


def test_a_path_model_has_lines(tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text('[measured]\nhost = "x"\n[path]\nrate = "10Mbit/s"\ndelay = "5"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r'path\.toml:5: path\.delay: "5" has no unit'):
        path_model.read(file)
    file.write_text("[path]\nrate\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"path\.toml:2: is not TOML: "):
        path_model.read(file)


@pytest.mark.parametrize(
    ("relation", "metric", "expected"),
    [
        ("faster", "goodput", "higher"),
        ("faster", "completion", "lower"),
        ("slower", "goodput", "lower"),
        ("greater", "goodput", "higher"),
        ("increases-with", "goodput", "rises-with"),
        ("highr", "goodput", "higher"),
    ],
)
def test_synonyms_of_relations_are_suggested(file: Path, relation: str, metric: str, expected: str) -> None:
    file.write_text(STUDY.replace('metric = "goodput"', f'metric = "{metric}"'), encoding="utf-8")
    text = complaint(file, 'relation = "higher"', f'relation = "{relation}"')
    assert f'did you mean "{expected}"?' in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '    "1ms",\n    "2ms"',
            '    "1x",\n    "2x"',
            'sweep."path.delay": each of "1x" and "2x" has the unknown unit "x"',
        ),
        ('    "1ms",\n    "2ms"', '    "1x",\n    "2"', '"1x" has the unknown unit "x": .*; "2" has no unit'),
        ('    "1ms",\n    "2ms"', "    1,\n    2", "sweep.*each of 1 and 2: must be a span of time"),
        ('    "1ms",\n    "2ms"', '    "1ms", "1ms", "2ms",\n    "2ms"', '"1ms" and "2ms" are repeated'),
        (
            'worlds = ["sim"]',
            'worlds = ["sin", "nets"]',
            '"sin" and "nets" are not worlds; .*"sim" and "netns"',
        ),
        (
            'worlds = ["sim"]',
            'show = "goodput"',
            'show: "goodput": must be a list: ."goodput".',
        ),
        (
            'worlds = ["sim"]',
            'show = ["godput", "rtx"]',
            'show: "godput" and "rtx" are not metrics; .*"goodput"',
        ),
    ],
)
def test_wrong_values_of_a_list_share_a_line(file: Path, old: str, new: str, words: str) -> None:
    text = complaint(file, old, new)
    assert re.search(words, text), text
    assert len(text.splitlines()) == 1, text


def test_an_incomplete_unit_suggests_all_units() -> None:
    with pytest.raises(ValueError, match="did you mean kbit/s, kB or KiB"):
        units.parse("100k")


SHORT = {"title": "Short", "path": {"rate": "10Mbit/s"}, "workload": {"kind": "file"}, "protocols": ["reno"]}


@pytest.mark.parametrize(
    ("key", "meant"),
    [("rtt", '"delay" (one-way: half of the RTT)'), ("bandwidth", '"rate"'), ("buffer", '"queue"')],
)
def test_common_names_of_keys_suggest_the_allowed_one(key: str, meant: str) -> None:
    with pytest.raises(
        StudyError, match=re.escape(f"path.{key}: unknown key: did you mean {meant}? allowed")
    ):
        load_study({**SHORT, "path": {"rate": "10Mbit/s", key: "1"}})


def test_an_unknown_protocol_by_name_lists_kinds_of_protocols() -> None:
    with pytest.raises(StudyError, match=r"known: bbr, .*; kinds of protocols: tcp, .*go-back-n"):
        load_study({**SHORT, "protocols": ["gbn"]})
    entry = {"name": "mine", "kind": "tcp", "congestion": "gbn"}
    with pytest.raises(StudyError) as raised:
        load_study({**SHORT, "protocols": [entry]})
    assert "kinds of protocols" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "t\n', "1: is not TOML: the line ends inside a text in quotes"),
        ("title = t\n", "1: is not TOML: a value is expected after =: text needs quotes"),
        ('title = "t"\npath = { rate = "1Mbit/s", }\n', "2: is not TOML: a key is expected"),
        ('title = "t"\npath = { rate = "1Mbit/s"\n', "2: is not TOML: { has no }"),
        ('title = "t"\nprotocols = ["reno"\n', "2: is not TOML: [ has no ]"),
    ],
)
def test_errors_of_the_parser_say_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text)
    with pytest.raises(StudyError, match=re.escape(message)):
        load_study(file)


def test_missing_sections_have_an_example_that_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('path = { rate = "1Mbit/s", delay = "1ms" }\n')
    with pytest.raises(StudyError) as caught:
        load_study(file)
    examples = [problem.message.partition("e.g. ")[2] for problem in caught.value.problems]
    assert len(examples) == 3
    file.write_text("\n".join([*examples, file.read_text()]))
    load_study(file)
