from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longfat.study import builtin
from longfat.study.catalogue import find
from longfat.study.schema import study_schema

Data = dict[str, Any]


# One worker builds the fixture, for all tests of this file.
pytestmark = pytest.mark.xdist_group("schema")


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = study_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_a_study_fits_the_schema(validator: Draft202012Validator, data: Data) -> None:
    data["sweep"] |= {
        "path.delay": {"from": "1ms", "to": "3ms", "step": "1ms"},
        "protocol.window": [1, 2],
        "protocols.sr.mss": ["512B"],
    }
    assert list(validator.iter_errors(data)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("titel", "x"),
        ("repeats", 0),
        ("path", {"dealy": "5ms"}),
        ("workload", {"kind": "fiel"}),
        ("protocols", [{"name": "x", "kind": "go-back"}]),
        ("protocols", [{"name": "x"}]),
        ("protocols", [8]),
        ("protocols", [{"name": "x", "kind": "go-back-n", "windwo": 1}]),
        ("sweep", {"loss": ["1%"]}),
        ("sweep", {"path.loss": []}),
        ("claims", [{"id": "x"}]),
    ],
)
def test_a_mistake_does_not_fit(validator: Draft202012Validator, data: Data, key: str, value: Any) -> None:
    assert list(validator.iter_errors({**data, key: value}))


@pytest.mark.parametrize(
    "protocols", ["cubic", ["cubic", "go-back-n"], {"kind": "tcp"}, [{"kind": "go-back-n"}, "bbr"]]
)
def test_short_forms_of_protocols_fit(validator: Draft202012Validator, data: Data, protocols: Any) -> None:
    traffic = {"name": "x", "protocol": "reno", "workload": {"kind": "bulk"}}
    for flows in (traffic, [traffic]):
        assert list(validator.iter_errors({**data, "protocols": protocols, "traffic": flows})) == []


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("2BDP", True),
        ("BDP / 4", True),
        ("max(1BDP, 64kB)", True),
        ("path.rate * 1s", True),
        ("2BDQ", False),
        ("1kb", False),
    ],
)
def test_expressions_fit(validator: Draft202012Validator, data: Data, value: str, *, fits: bool) -> None:
    data["path"]["queue"] = value
    data["sweep"] = {"path.rate, path.delay": [["1Mbit/s", "1ms"]]}
    assert (list(validator.iter_errors(data)) == []) == fits


@pytest.mark.parametrize("name", sorted(builtin()))
def test_built_in_studies_fit(validator: Draft202012Validator, name: str) -> None:
    import tomllib

    assert list(validator.iter_errors(tomllib.loads(find(name).read_text()))) == []
