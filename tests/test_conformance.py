"""Results of conformance suites that others wrote, as reviewed in the documentation."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from longfat.api.scripts import reason_of, results
from tests import requirements

DOCS = Path(__file__).parents[1] / "docs"
SUMMARY = DOCS / "conformance.md"
FOLDERS = "LONGFAT_PACKETDRILL"
"""Variable with the folders of the suites, separated like those of `PATH`."""
SUITES = {
    "google/packetdrill, `gtests/net/tcp`": SUMMARY,
    "[Linux](conformance-linux.md), `tools/testing/selftests/net/packetdrill`": DOCS / "conformance-linux.md",
    "[multipath-tcp/packetdrill](conformance-mptcp.md), `gtests/net/mptcp`": DOCS / "conformance-mptcp.md",
}
"""Suites by their row in the table of counts, with the page of their results."""
ROW = re.compile(r"^\| (\S+\.pkt) \| (pass|fail|unsupported) \| (.*?) ?\|$", re.MULTILINE)
GROUP = re.compile(r"^\| ([\w/]+) \| (\d+) \| (\d*) \| (\d*) \| (\d*) \|$", re.MULTILINE)

suites = pytest.mark.parametrize("suite", SUITES)


def rows(suite: str) -> list[tuple[str, str, str]]:
    """Returns name, result and reason of each script of a suite on its page."""
    return ROW.findall(SUITES[suite].read_text(encoding="utf-8"))


def folder_of(suite: str) -> Path | None:
    """Returns the folder of the variable that contains the scripts of a suite."""
    names = [name for name, _, _ in rows(suite)]
    folders = [Path(folder) for folder in os.environ.get(FOLDERS, "").split(os.pathsep) if folder]
    found = [folder for folder in folders if any((folder / name).is_file() for name in names)]
    for folder in found:
        missing = [name for name in names if not (folder / name).is_file()]
        assert missing == [], f"{folder} lacks scripts of the reviewed commit"
    return found[0] if found else None


@suites
def test_the_page_states_the_counts_of_its_table(suite: str) -> None:
    text = SUMMARY.read_text(encoding="utf-8")
    counts = Counter(result for _, result, _ in rows(suite))
    stated = re.findall(
        rf"^\| {re.escape(suite)} \| .* \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE
    )
    assert [int(number) for number in stated[0]] == [
        counts.total(),
        counts["pass"],
        counts["fail"],
        counts["unsupported"],
    ]


@suites
def test_the_groups_add_up_to_the_suite(suite: str) -> None:
    found = GROUP.findall(SUITES[suite].read_text(encoding="utf-8"))
    of_groups = [sum(int(counts[column] or 0) for _, *counts in found) for column in range(4)]
    counts = Counter(result for _, result, _ in rows(suite))
    assert of_groups == [counts.total(), counts["pass"], counts["fail"], counts["unsupported"]]


@suites
def test_each_script_that_does_not_pass_has_a_reason(suite: str) -> None:
    assert [name for name, result, reason in rows(suite) if (result == "pass") == bool(reason)] == []


@suites
def test_scripts_that_passed_still_pass(suite: str) -> None:
    folder = folder_of(suite)
    if folder is None:
        requirements.skip_foreign(f"{FOLDERS} names no folder of {suite}")
    seen = {Path(report["path"]).relative_to(folder).as_posix(): report for report in results(folder)}
    worse = [
        f"{name}: {seen[name]['outcome']}, {reason_of(seen[name])}"
        for name, result, _ in rows(suite)
        if result == "pass" and seen[name]["outcome"] != "pass"
    ]
    assert worse == []
