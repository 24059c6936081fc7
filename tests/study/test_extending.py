"""`extends`: a study based on another one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longfat.study import StudyError, load_study
from longfat.study.schema import study_schema

Data = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def base(data: Data, write: Write) -> Path:
    """A base study: Go-Back-N and selective repeat with window 8, a sweep of path.loss, one claim."""
    return write(data, "base.toml")


def complaint(source: Path) -> str:
    with pytest.raises(StudyError) as caught:
        load_study(source)
    return str(caught.value)


def test_keys_of_the_base_study_apply_unless_set(base: Path, write: Write) -> None:
    child = load_study(
        write({"extends": "base.toml", "title": "Child", "path": {"delay": "50ms"}}, "child.toml")
    )
    parent = load_study(base)
    assert (child.name, child.title) == ("child", "Child")
    assert child.path == (parent.path or {}) | {"delay": "50ms"}
    assert child.sweep == parent.sweep
    assert child.claims == parent.claims
    assert "extends" not in child.text


def test_entries_merge_by_name_and_new_ones_follow(base: Path, write: Write) -> None:
    first, second = load_study(base).protocols
    changed = [{"name": second.name, "window": 4}, {"name": "saw", "kind": "stop-and-wait"}]
    child = load_study(write({"extends": "base.toml", "protocols": changed}, "child.toml"))
    assert [entry.name for entry in child.protocols] == [first.name, second.name, "saw"]
    assert child.protocols[1].settings == second.settings | {"window": 4}


def test_a_table_of_another_kind_replaces(base: Path, write: Write) -> None:
    workload = {"kind": "request-response", "requests": 3}
    assert (
        load_study(write({"extends": "base.toml", "workload": workload}, "child.toml")).workload == workload
    )


def test_a_topology_replaces_a_path(base: Path, write: Write) -> None:
    topology = {"kind": "dumbbell", "pairs": 1, "bottleneck": {"rate": "10Mbit/s"}}
    own = {"extends": {"study": "base.toml", "without": ["sweep", "claims"]}, "topology": topology}
    child = load_study(write(own, "child.toml"))
    assert (child.path, child.topology, child.claims, child.sweep) == (None, topology, [], {})


def test_without_removes_entries_and_swept_keys(base: Path, write: Write) -> None:
    first, second = load_study(base).protocols
    without = ["claims", f"protocols.{first.name}", "sweep.path.loss"]
    child = load_study(write({"extends": {"study": "base.toml", "without": without}}, "child.toml"))
    assert [entry.name for entry in child.protocols] == [second.name]
    assert child.sweep == {}


def test_studies_extend_over_several_levels_and_built_in_ones(write: Write) -> None:
    write({"extends": "arq/loss", "repeats": 3}, "one.toml")
    two = load_study(write({"extends": "one.toml", "seed": 7}, "two.toml"))
    assert (two.repeats, two.seed) == (3, 7)
    assert two.protocols == load_study("arq/loss").protocols
    assert load_study({"extends": "arq/loss", "seed": 7}).protocols == two.protocols


def test_file_names_are_relative_to_the_file_that_contains_them(
    tmp_path: Path, data: Data, write: Write
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "rate.trace").write_text("1\n2\n5\n")
    del data["path"]["rate"]
    data["path"]["trace"] = "rate.trace"
    write(data, "base.toml")
    child = tmp_path / "sub" / "child.toml"
    child.write_text('extends = "../base.toml"\n')
    assert Path(str((load_study(child).path or {})["trace"])).resolve() == tmp_path / "rate.trace"


@pytest.mark.parametrize(
    ("extends", "words"),
    [
        ("bse.toml", r'"bse.toml" is neither a file in .* nor a built-in study'),
        ("arq/los", r'"arq/los" is neither .* \(did you mean "arq/loss"\?\)'),
        (3, r'must be a study \("base.toml", "arq/loss"\) or \{ study'),
        ({"study": "base.toml", "witout": []}, "must be a study"),
        ({"study": "base.toml", "without": ["claim"]}, r'extends.without: "base.toml" has no key "claim"'),
        ("child.toml", r'"child.toml" extends "child.toml": a study cannot extend itself'),
    ],
)
def test_a_wrong_base_is_one_line_with_its_place(base: Path, write: Write, extends: Any, words: str) -> None:
    child = write({"title": "Child", "extends": extends}, "child.toml")
    text = complaint(child)
    assert len(text.splitlines()) == 1
    assert re.match(rf"{re.escape(str(child))}:\d+: extends", text), text
    assert re.search(words, text), text


def test_a_cycle_is_refused(write: Write) -> None:
    one = write({"extends": "two.toml"}, "one.toml")
    write({"extends": "one.toml"}, "two.toml")
    assert '"one.toml" extends "two.toml" extends "one.toml"' in complaint(one)


def test_a_mistake_has_the_line_of_the_file_that_contains_it(data: Data, write: Write) -> None:
    data["path"]["dealy"] = "5ms"
    base = write(data, "base.toml")
    child = write({"extends": "base.toml", "protocols": [{"name": "sr", "windwo": 4}]}, "child.toml")
    first, second = sorted(complaint(child).splitlines())
    assert re.match(rf"{re.escape(str(base))}:\d+: path.dealy: ", first)
    assert re.match(rf"{re.escape(str(child))}:\d+: protocols.sr.windwo: ", second)


def test_an_override_cannot_extend(base: Path) -> None:
    from longfat.study import Overrides

    with pytest.raises(StudyError, match="extends: only a study file or a dict can extend"):
        load_study(base, Overrides(settings=(("extends", "arq/loss"),)))


def test_a_partial_study_fits_the_schema() -> None:
    validator = Draft202012Validator(study_schema())
    partial = {
        "extends": "arq/loss",
        "workload": {"size": "1MB"},
        "protocols": [{"name": "gbn", "window": 8}],
    }
    assert list(validator.iter_errors(partial)) == []
    del partial["extends"]
    assert list(validator.iter_errors(partial))
    assert list(validator.iter_errors({"extends": "arq/loss", "workload": {"sise": "1MB"}}))
