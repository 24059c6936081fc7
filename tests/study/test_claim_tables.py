"""Claims that share keys, default keys of claims, and the lines of both in messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longfat.study import StudyError, load_study
from longfat.study.schema import study_schema

Data = dict[str, Any]
HEAD = """\
title = "Two queues"
repeats = 3
path = { rate = "10Mbit/s", delay = "20ms" }
workload = { kind = "bulk", duration = "2s" }
protocols = ["cubic", "reno"]
show = ["goodput"]
sweep = { "path.queue" = ["1BDP", "2BDP"] }
"""
GROUP = """\
claims = [
    { of = "cubic", relation = "within", by = "5%", each = [
        { id = "a", text = "A", against = "reno" },
        { id = "b", text = "B", against = "reno", by = "9%" },
    ] },
    { id = "c", text = "C", of = "reno", relation = "highest", among = "path.queue" },
]
"""
TABLES = """\
[[claims]]
of = "cubic"
relation = "within"
by = "5%"

[[claims.each]]
id = "a"
text = "A"
against = "reno"

[[claims.each]]
id = "b"
text = "B"
against = "reno"
by = "9%"
"""


def test_claims_of_a_group_have_its_keys_unless_they_set_them(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(HEAD + GROUP)
    (tmp_path / "tables.toml").write_text(HEAD + TABLES)
    study = load_study(tmp_path / "list.toml")
    found = {claim.id: (claim.of, claim.relation, claim.by, claim.metric) for claim in study.claims}
    assert found == {
        "a": ("cubic", "within", "5%", "goodput"),
        "b": ("cubic", "within", "9%", "goodput"),
        "c": ("reno", "highest", None, "goodput"),
    }
    assert load_study(tmp_path / "tables.toml").claims == study.claims[:2]
    assert load_study(type(study).from_toml(study.to_toml())).claims == study.claims


def test_groups_contain_groups(data: Data) -> None:
    own = {"id": "a", "text": "A", "metric": "goodput"}
    data["claims"] = [{"of": "gbn", "each": [{"relation": "lower", "each": [{**own, "against": "sr"}]}]}]
    [claim] = load_study(data).claims
    assert (claim.of, claim.relation, claim.against) == ("gbn", "lower", "sr")


def test_a_study_replaces_a_claim_in_a_group_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(HEAD + GROUP)
    (tmp_path / "own.toml").write_text('extends = "base.toml"\nclaims = [{ id = "b", by = "20%" }]\n')
    assert [claim.by for claim in load_study(tmp_path / "own.toml").claims] == ["5%", "20%", None]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "b", text', 'id = "b", txt', r"11: claims\[b\].txt: unknown key"),
        ('relation = "within"', 'relation = "witin"', r'9: claims\[a\].relation: "witin" is not known'),
        (
            'of = "reno", relation = "highest"',
            'relation = "highest"',
            r"13: claims\[c\].of: is missing; .*reno",
        ),
        ('id = "b"', 'id = "a"', r"claims\[a\].id: 2 claims have the id"),
        (
            'show = ["goodput"]',
            "",
            r"claims\[a\].metric: is missing; the default is the first metric of show",
        ),
    ],
)
def test_messages_have_the_line_of_the_claim(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "s.toml").write_text((HEAD + GROUP).replace(old, new))
    with pytest.raises(StudyError, match=f"s.toml:.*{message}"):
        load_study(tmp_path / "s.toml")


def test_messages_about_shared_keys_have_the_line_of_the_group(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(HEAD + TABLES.replace('of = "cubic"', 'of = "cubik"'))
    with pytest.raises(StudyError, match=r's.toml:9: claims\[a\].of: "cubik" is not a protocol'):
        load_study(tmp_path / "s.toml")


@pytest.mark.parametrize("each", [3, [], [3], {"id": "a"}])
def test_a_group_is_a_list_of_tables(data: Data, each: Any) -> None:
    data["claims"] = [{"id": "a", "text": "A", "of": "gbn", "each": each}]
    with pytest.raises(StudyError, match=r"claims\[a\]: each: must be a list of tables"):
        load_study(data)


def test_the_only_protocol_is_the_default(data: Data) -> None:
    claim = {"id": "a", "text": "A", "metric": "goodput", "relation": "at-least", "value": "1kbit/s"}
    data |= {"protocols": ["cubic"], "claims": [claim], "sweep": {}}
    assert [one.of for one in load_study(data).claims] == ["cubic"]


@pytest.mark.xdist_group("schema")
@pytest.mark.parametrize(
    ("claim", "fits"),
    [
        ({"of": "gbn", "each": [{"id": "a", "text": "A", "relation": "best"}]}, True),
        ({"id": "a", "text": "A", "relation": "best"}, True),
        ({"id": "a", "text": "A"}, False),
        ({"of": "gbn", "each": []}, False),
        ({"of": "gbn", "each": [{"idd": "a"}]}, False),
    ],
)
def test_the_schema_has_groups(data: Data, claim: Data, fits: bool) -> None:
    found = list(Draft202012Validator(study_schema()).iter_errors({**data, "claims": [claim]}))
    assert (found == []) == fits
