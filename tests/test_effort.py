"""`LONGFAT_EFFORT` scales counts of random cases and kills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import effort

ROOT = Path(__file__).parents[1]


def test_the_share_of_a_full_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(effort.EFFORT, raising=False)
    monkeypatch.delenv("LONGFAT_KILLS", raising=False)
    assert (effort.cases(800), effort.cases(3), effort.count("LONGFAT_KILLS", 16)) == (100, 1, 2)
    monkeypatch.setenv(effort.EFFORT, "1")
    assert (effort.cases(800), effort.cases(3), effort.count("LONGFAT_KILLS", 16)) == (800, 3, 16)
    monkeypatch.setenv("LONGFAT_KILLS", "100")
    assert (effort.cases(3), effort.count("LONGFAT_KILLS", 16)) == (3, 100)


@pytest.mark.parametrize("value", ["much", "0", "-1", "inf", "nan"])
def test_other_values_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(effort.EFFORT, value)
    with pytest.raises(pytest.UsageError, match=f'LONGFAT_EFFORT: "{value}" is not a positive number'):
        effort.cases(8)


def test_rust_has_the_same_default() -> None:
    defaults = {
        re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))[1]  # type: ignore[index]
        for file, pattern in (
            ("crates/testing/src/effort.rs", r'unwrap_or\("([\d.]+)"\)'),
            ("tests/effort.py", r'get\(EFFORT, "([\d.]+)"\)'),
        )
    }
    assert defaults == {"0.125"}
