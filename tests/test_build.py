"""The build of the tests: it includes all test files and compiles no crate twice."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = sorted(path.parent for path in ROOT.glob("crates/*/tests/main.rs"))


@pytest.mark.parametrize("folder", TESTS, ids=lambda folder: folder.parent.name)
def test_the_test_program_of_a_crate_has_all_its_files(folder: Path) -> None:
    files = {path.stem for path in folder.glob("*.rs")} - {"main"}
    folders = {path.parent.name for path in folder.glob("*/mod.rs")}
    declared = re.findall(r"^mod (\w+);", (folder / "main.rs").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(files | folders) == sorted(declared)


def test_the_wheel_and_the_tests_share_their_crates() -> None:
    """Cargo recompiles a crate whose features differ between the two selections of the Makefile."""
    wheel = _features("--package", "longfat-python", "--edges", "normal,build")
    tests = _features("--workspace", "--exclude", "longfat-benchmarks", "--edges", "normal,build,dev")
    assert len(wheel) > 50
    assert wheel <= tests


@pytest.mark.xdist_group("machine")
def test_groups_are_in_effect(request: pytest.FixtureRequest) -> None:
    """pytest-xdist 3.8 ignores groups with pytest 9.2, where tests cannot be renamed."""
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@machine")


def _features(*selection: str) -> set[str]:
    command = [
        "cargo",
        "tree",
        "--locked",
        "--offline",
        "--prefix",
        "none",
        "--format",
        "{p} [{f}]",
        *selection,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.removesuffix(" (*)") for line in done.stdout.splitlines() if line}
