"""The studies of published results: short, and the same claims as when they were measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.study import builtin, load_study

PUBLISHED = {name: path for name, path in builtin().items() if name.startswith("published/")}
MOST_LINES = 30
MOST_COLUMNS = 150
CLAIMS = {
    "published/bbr-buffers": ["deep", "shallow"],
    "published/bbr-model": ["cubic", "reno", "each", "deep-1", "deep-3"],
    "published/bbr-share": ["fixed-share", "deep"],
    "published/buffer-sizing": ["busy"],
    "published/cubic-region": ["friendly", "larger"],
    "published/incast": ["collapse", "cure"],
    "published/latency-under-load": ["codel-target", "against-bloat", "busy"],
    "published/rtt-unfairness": ["reno", "cubic"],
}


def test_all_published_results_are_checked() -> None:
    assert sorted(PUBLISHED) == sorted(CLAIMS)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_result_is_a_study_of_thirty_lines(name: str) -> None:
    lines = [line for line in Path(PUBLISHED[name]).read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_result_keeps_its_claims(name: str) -> None:
    study = load_study(name)
    assert [claim.id for claim in study.claims] == CLAIMS[name]
    assert study.source
