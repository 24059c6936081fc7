"""A built-in part costs one file and at most two lines elsewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The part, its words in code, and its own file.
PARTS = [
    ("controller", r"westwood|Westwood", "crates/transport/src/congestion/westwood.rs"),
    ("queue discipline", r"pie|Pie", "crates/network/src/queue/pie.rs"),
    ("metric", r"queue_max_packets", "crates/experiment/src/metrics/links.rs"),
    ("command", r"transact(?=\":)|import transact", "python/longfat/cli/commands/transact.py"),
    ("key of a study", r"stagger", "crates/experiment/src/plan.rs"),
]
# Optional for a new part: files that select among parts, and names for tables. Types of keys are generated.
CHOICES = {
    "python/longfat/api/diagnosis_study.py",
    "python/longfat/presentation/names.py",
    "python/longfat/study/quick.py",
    "python/longfat/study/key_types.py",
}


def _code(path: str) -> list[str]:
    """Returns the lines of a source file without comments, docstrings and unit tests."""
    text = (ROOT / path).read_text()
    if path.endswith(".rs"):
        text = re.split(r"#\[cfg\(test\)\]\nmod \w+ \{", text)[0]
        return [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    text = re.sub(r'"""(?:.|\n)*?"""', "", text)
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize(("part", "words", "own"), PARTS)
def test_a_part_is_one_file_and_two_lines(part: str, words: str, own: str) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "crates/*/src/*.rs", "python/longfat/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    word = re.compile(rf"\b(?:{words})\b")
    sources = [path for path in listed.stdout.split() if not path.startswith("crates/benchmarks/")]
    assert (ROOT / own).exists()
    elsewhere = [
        f"{path}: {line.strip()}"
        for path in sources
        if path != own and path not in CHOICES
        for line in _code(path)
        if word.search(line)
    ]
    assert 1 <= len(elsewhere) <= 2, f"{part}: {elsewhere}"
