"""Results of conformance suites that others wrote, as reviewed in `docs/conformance.md`."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from longfat.api.scripts import reason_of, results
from tests import requirements

PAGE = Path(__file__).parents[1] / "docs/conformance.md"
FOLDER = "LONGFAT_PACKETDRILL"
"""Variable with the folder `gtests/net/tcp` of google/packetdrill."""
ROW = re.compile(r"^\| (\S+\.pkt) \| (pass|fail|unsupported) \| (.*?) ?\|$", re.MULTILINE)
SUITE = re.compile(r"^\| google/packetdrill, .* \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def reviewed() -> dict[str, str]:
    """Returns the result of each script on the page."""
    return {name: result for name, result, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def test_the_page_states_the_counts_of_its_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    counts = Counter(reviewed().values())
    stated = [int(number) for number in SUITE.findall(text)[0]]
    assert stated == [counts.total(), counts["pass"], counts["fail"], counts["unsupported"]]


def test_each_script_that_does_not_pass_has_a_reason() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [name for name, result, reason in rows if (result == "pass") == bool(reason)] == []


def test_scripts_that_passed_still_pass() -> None:
    if FOLDER not in os.environ:
        requirements.skip_foreign(f"{FOLDER} names no folder of google/packetdrill's scripts")
    folder = Path(os.environ[FOLDER])
    seen = {Path(report["path"]).relative_to(folder).as_posix(): report for report in results(folder)}
    known = reviewed()
    assert seen.keys() >= known.keys(), f"{folder} lacks scripts of the reviewed commit"
    worse = [
        f"{name}: {seen[name]['outcome']}, {reason_of(seen[name])}"
        for name, result in known.items()
        if result == "pass" and seen[name]["outcome"] != "pass"
    ]
    assert worse == []
