"""docs/study-file.md names every key, word and table form that a study file may have, and no other."""

from __future__ import annotations

import os
import re
import tomllib

import pytest
from tests.docs import reference

from longfat.study import load_study

AGAIN = "write the tables anew: LONGFAT_WRITE_DOCS=1 pytest tests/docs"


@pytest.fixture(scope="module", autouse=True)
def _write_if_asked() -> None:
    if os.environ.get("LONGFAT_WRITE_DOCS"):
        reference.write()


def test_every_table_is_on_the_page() -> None:
    assert sorted(reference.written()) == sorted(reference.TABLES)


@pytest.mark.parametrize("name", reference.TABLES)
def test_every_key_is_on_the_page(name: str) -> None:
    on_the_page = reference.first_cells(reference.written()[name])
    declared = reference.first_cells(reference.table(name))
    assert len(declared) > (name == "workload")
    assert on_the_page == declared, AGAIN


def test_the_examples_make_a_study() -> None:
    blocks = re.findall(
        r"^```toml\n(.*?)^```", reference.PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    skeleton, *others = (tomllib.loads(block) for block in blocks)
    assert others
    load_study(skeleton)
    for other in others:
        # A study of several hosts is written out as a whole.
        load_study(other if "topology" in other else skeleton | other)
