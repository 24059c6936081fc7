"""Values of a wrong type for every key of the vocabulary: messages use the terms of study files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from longfat import _native
from longfat.study import StudyError, load_study
from longfat.study.keys import place
from longfat.study.schema import resolve, study_schema, variants
from longfat.study.vocabulary import SECTIONS, Section

WRONG: tuple[Any, ...] = (True, 1.5, -1, 10**30, "no such value", "", [], [True], {}, {"no": 1}, None)
RUST = re.compile(
    r"\b([ui](8|16|32|64|128|size)|f(32|64)|struct|enum|tuple|usize|untagged|variant|Option|unit value|"
    r"invalid type|invalid value|[A-Z][a-z]+[A-Z]\w+)\b"
)


def _keys(
    schema: dict[str, Any], definitions: dict[str, Any], depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each dotted key with the constants that select its table."""
    if depth == 0:
        return
    for variant in variants(schema, definitions):
        properties = variant.get("properties", {})
        constants = {key: value["const"] for key, value in properties.items() if "const" in value}
        for key, content in properties.items():
            yield key, {name: value for name, value in constants.items() if name != key}
            for inner, fixed in _keys(resolve(content, definitions), definitions, depth - 1):
                yield f"{key}.{inner}", constants | {f"{key}.{name}": value for name, value in fixed.items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_no_message_names_a_type_of_rust(section: Section) -> None:
    schema = json.loads(_native.vocabulary())[section]
    # References have the same form in the schemas of sections and of studies.
    keys = {(key, json.dumps(fixed)) for key, fixed in _keys(schema, schema.get("$defs", {}), 3)}
    assert len(keys) > 5
    messages = 0
    for key, fixed in sorted(keys):
        for wrong in WRONG:
            settings: dict[str, Any] = {}
            for name, value in (*json.loads(fixed).items(), (key, wrong)):
                place(settings, name, value)
            for problem in json.loads(_native.check(section, json.dumps(settings))):
                messages += 1
                text = problem["message"].replace(json.dumps(wrong), "")
                assert not RUST.search(text), f"{section}.{key} = {json.dumps(wrong)}: {problem}"
    assert messages > len(keys)


def test_no_message_about_a_top_level_key_names_a_type(data: dict[str, Any]) -> None:
    for key in study_schema()["properties"]:
        for wrong in WRONG[:-1]:
            text = _error(data | {key: wrong}).replace(json.dumps(wrong), "")
            assert not RUST.search(text), f"{key} = {wrong}: {text}"


def _error(data: dict[str, Any]) -> str:
    """Returns the message about a study; empty for a valid one."""
    try:
        load_study(data)
    except StudyError as error:
        return str(error)
    return ""


def test_a_wrong_type_is_reported_with_the_expected_form() -> None:
    def message(section: Section, **settings: object) -> list[str]:
        return [problem["message"] for problem in json.loads(_native.check(section, json.dumps(settings)))]

    bottleneck = {"rate": "1Mbit/s"}
    found = message("topology", kind="dumbbell", pairs="two", bottleneck=bottleneck)
    assert found == ['"two": must be a whole number']
    assert message("topology", kind="dumbbell", pairs=0, bottleneck=bottleneck) == [
        "0 is out of range: 1 to 10000"
    ]
    (loss,) = message("path", loss=2)
    assert loss.startswith('2: must be a probability with its unit such as "2%", or one of the tables')
    assert all(kind in loss for kind in ("bernoulli", "gilbert-elliott", "every", "packets"))
