"""`longfat grade` and `longfat handout`: verdicts of submissions, their limits and errors."""

from __future__ import annotations

import csv
import subprocess
import tomllib
from pathlib import Path

import pytest

from longfat.api import grading
from longfat.api._graded import tables
from longfat.study import load_study
from longfat.study.handout import handout_of
from longfat.system.interpreter import python_command

LAB = """
title = "Which controller is faster than Reno?"
path = { rate = "10Mbit/s", delay = "10ms", queue = "50pkt", loss = "1%" }
workload = { kind = "bulk", duration = "4s", warm_up = "1s" }
protocols = [{ name = "submission", kind = "tcp", congestion = "cubic" }, "reno"]
repeats = 3
notes = "The answer is in the notes."

[[claims]]
id = "faster"
text = "The controller is faster than Reno"
metric = "goodput"
of = "submission"
against = "reno"
relation = "higher"

[[claims]]
id = "retransmits"
text = "It retransmits at most 1000 packets"
metric = "retransmissions"
of = "submission"
relation = "at-most"
value = 1000
"""

CONTROLLER = """
import longfat


class Mine(longfat.CongestionController):
    def on_acknowledged(self, ack):
        {acknowledged}

    def on_lost(self, loss):
        pass

    def on_timeout(self, now, in_flight):
        pass
"""

SUBMISSIONS = {
    "fixed.py": CONTROLLER.format(acknowledged="self.window = 30 * self.segment"),
    "one.py": CONTROLLER.format(acknowledged="self.window = 2 * self.segment"),
    "loop.py": CONTROLLER.format(acknowledged="while True: self.segment"),
    "raises/mine.py": CONTROLLER.format(acknowledged="self.window = 1 / (ack.bytes * 0)"),
    "large.py": CONTROLLER.format(
        acknowledged="self.kept = getattr(self, 'kept', []) + [bytes(10**7) + b'x']"
    ),
    "syntax.py": "class Mine",
    "none.py": "import longfat",
    "study.toml": LAB.replace('congestion = "cubic"', 'congestion = "bbr1"'),
    "two/a.py": "",
    "two/b.py": "",
}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    for name, text in SUBMISSIONS.items():
        file = tmp_path / "submissions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_each_submission_has_a_grade(lab: Path) -> None:
    command = python_command("-m", "longfat", "grade", "submissions", "--study", "lab.toml")
    limits = ["--csv", "grades.csv", "--time", "20s", "--memory", "800MB"]
    done = subprocess.run([*command, *limits], cwd=lab, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    with (lab / "grades.csv").open(encoding="utf-8") as file:
        rows = {row["submission"]: row for row in csv.DictReader(file)}
    verdicts = {name: (row["faster"], row["retransmits"]) for name, row in rows.items()}
    assert verdicts["fixed"] == ("holds", "holds")
    assert verdicts["one"] == ("fails", "holds")
    assert verdicts["study"] == ("holds", "holds")
    missing = ("not run", "not run")
    assert all(verdicts[name] == missing for name in ("loop", "large", "syntax", "none", "two"))
    errors = {name: row["error"] for name, row in rows.items()}
    assert errors["loop"] == "no result within 20 s: in on_acknowledged (loop.py, line 7)"
    assert "ZeroDivisionError: division by zero (line 7)" in errors["raises"]
    assert errors["large"] == "more memory than 800 MB"
    assert "SyntaxError" in errors["syntax"]
    assert errors["none"].startswith("none.py: no controller; allowed: one class")
    assert errors["two"] == "2 files (a.py, b.py); allowed: one"
    assert errors["fixed"] == ""


def test_a_controller_replaces_the_protocol_of_the_lab(lab: Path) -> None:
    given = tomllib.loads(LAB)
    made = tables(given, lab / "submissions" / "fixed.py")
    assert made["protocols"][0]["congestion"] == f"{lab / 'submissions' / 'fixed.py'}:Mine"
    assert made["protocols"][1:] == given["protocols"][1:]
    given["protocols"] = given["protocols"][1:]
    with pytest.raises(ValueError, match='no protocol named "submission"'):
        tables(given, lab / "submissions" / "fixed.py")


def test_a_study_has_the_claims_of_the_lab(lab: Path) -> None:
    study = lab / "submissions" / "study.toml"
    study.write_text(
        study.read_text().replace("at most 1000", "at most 5000").replace("value = 1000", "value = 5000")
    )
    made = tables(tomllib.loads(LAB), study)
    assert made["protocols"][0]["congestion"] == "bbr1"
    assert made["claims"] == tomllib.loads(LAB)["claims"]


def test_folders_without_submissions_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no submissions; allowed: files and folders"):
        grading.submissions(tmp_path)
    with pytest.raises(ValueError, match="no such folder"):
        grading.submissions(tmp_path / "missing")


def test_handouts_have_questions_instead_of_claims(lab: Path) -> None:
    text = handout_of(load_study(lab / "lab.toml"))
    assert "# 1. The controller is faster than Reno\n# 2. It retransmits at most 1000 packets\n" in text
    made = tomllib.loads(text)
    given = tomllib.loads(LAB)
    assert made.keys() == given.keys() - {"claims", "notes"}
    assert [one["name"] for one in made["protocols"]] == ["submission", "reno"]
    assert made["workload"] == given["workload"]
