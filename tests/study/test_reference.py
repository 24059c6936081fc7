"""Sections as readable rows: every table is named by its kind or its keys."""

from __future__ import annotations

import pytest

from longfat.study.reference import section_rows
from longfat.study.vocabulary import SECTIONS, Section


@pytest.mark.parametrize("section", SECTIONS)
def test_tables_are_named_by_their_kind(section: Section) -> None:
    for _, rows in section_rows(section):
        unnamed = [row for row in rows if row.key == "{...}" and "any of the other keys" in row.help]
        assert len(unnamed) <= 1, section


def test_schedulers_are_named() -> None:
    named = {row.key for _, rows in section_rows("protocol") for row in rows}
    for kind in ("min-rtt", "round-robin", "redundant", "blest", "daps", "otias"):
        assert f'{{ kind = "{kind}" }}' in named
