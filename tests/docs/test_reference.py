"""docs/reference is complete and up to date, in pages of moderate size."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.docs import reference

from longfat.study import builtin, load_study

DOCS = reference.FOLDER.parent
MOST_BYTES = 20_000


def test_every_table_is_on_a_page() -> None:
    assert sorted(reference.written()) == sorted(reference.TABLES)


@pytest.mark.parametrize("name", reference.TABLES)
def test_tables_are_up_to_date(name: str) -> None:
    assert reference.written()[name] == reference.TABLES[name](), "run: make reference"


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        (
            "controllers",
            ("reno", "cubic", "bbr", "bbr1", "vegas", "westwood", "dctcp", "lia", "wvegas", "fixed"),
        ),
        ("schedulers", ("min-rtt", "round-robin", "redundant", "daps", "otias", "blest", "ecf")),
        ("policies", ("all", "single", "fsfs", "foresight", "mmptcp", "freeway")),
        ("queue", ("drop-tail", "drop-head", "red", "codel", "fq-codel", "pie", "pi2", "dualpi2", "step")),
        ("loss", ("bernoulli", "gilbert-elliott", "every", "packets")),
    ],
)
def test_every_kind_has_one_section(page: str, kinds: tuple[str, ...]) -> None:
    headings = re.findall(r"^## `(.*)`$", (reference.FOLDER / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    assert set(kinds) <= set(headings)
    assert len(headings) == len(set(headings))


def test_the_index_links_every_page() -> None:
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", (reference.FOLDER / "README.md").read_text("utf-8")))
    assert {page.name for page in reference.pages()} - {"README.md"} <= linked


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_pages_have_a_moderate_size(page: Path) -> None:
    assert page.stat().st_size <= MOST_BYTES


def test_the_examples_are_studies() -> None:
    blocks = [
        tomllib.loads(block)
        for page in reference.pages()
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    ]
    complete = [block for block in blocks if "workload" in block]
    fragments = [block for block in blocks if "workload" not in block]
    assert complete
    assert fragments
    for study in complete:
        load_study(study)
    skeleton = next(study for study in complete if "path" in study)
    for fragment in fragments:
        load_study(fragment if "extends" in fragment else skeleton | fragment)


def test_the_changelog_names_the_families_of_studies() -> None:
    changelog = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    families = sorted({name.partition("/")[0] for name in builtin()})
    [line] = [line for line in changelog.splitlines() if line.startswith("- Built-in studies of ")]
    assert re.findall(r"`([^`]+)`", line) == families
