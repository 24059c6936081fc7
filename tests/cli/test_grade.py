"""`longfat grade` and `longfat handout`: verdicts of submissions, their limits and errors."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from longfat.api import grading
from longfat.api._graded import tables
from longfat.study import load_study
from longfat.study.handout import handout_of
from longfat.system import process_tree
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
    "sudden.py": CONTROLLER.format(acknowledged="self.kept = b'x' * 3_000_000_000"),
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
    limits = ["--csv", "grades.csv", "--time", "60s", "--memory", "800MB"]
    done = subprocess.run([*command, *limits], cwd=lab, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    with (lab / "grades.csv").open(encoding="utf-8") as file:
        rows = {row["submission"]: row for row in csv.DictReader(file)}
    verdicts = {name: (row["faster"], row["retransmits"]) for name, row in rows.items()}
    assert verdicts["fixed"] == ("holds", "holds")
    assert verdicts["one"] == ("fails", "holds")
    assert verdicts["study"] == ("holds", "holds")
    missing = ("not run", "not run")
    without = ("loop", "raises", "large", "sudden", "syntax", "none", "two")
    assert all(verdicts[name] == missing for name in without)
    errors = {name: row["error"] for name, row in rows.items()}
    assert errors["loop"] == "no result within 60 s: in on_acknowledged (loop.py, line 7)"
    assert "trials failed: mine.py:" in errors["raises"]
    assert "ZeroDivisionError: division by zero (line 7)" in errors["raises"]
    assert errors["large"] == "more memory than 800 MB"
    assert "MemoryError" in errors["sudden"]
    assert re.search(
        r"^one +1/2  ✗ faster ✓ retransmits\n +faster: goodput: submission ", done.stdout, re.MULTILINE
    )
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


def test_a_controller_keeps_the_settings_of_the_lab(lab: Path) -> None:
    given = tomllib.loads(LAB)
    given["protocols"][0] |= {"ecn": True, "mss": "1000B"}
    (made, _) = tables(given, lab / "submissions" / "fixed.py")["protocols"]
    assert (made["ecn"], made["mss"]) == (True, "1000B")


DETACHED = """
import subprocess
import sys

program = "kept = b'x' * {bytes}; import time; time.sleep(150)"
child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
open({file!r}, "w").write(str(child.pid))
import time
time.sleep({sleep})
"""


def _graded(tmp_path: Path, *, size: int, sleep: float, **limits: Any) -> tuple[grading.Grade, Path]:
    """Grades a module with a process in its own session, whose number is in the returned file."""
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    file = tmp_path / "pid"
    module = tmp_path / "detached.py"
    module.write_text(DETACHED.format(bytes=size, file=str(file), sleep=sleep), encoding="utf-8")
    one = grading.Submission("detached", module)
    lab = tmp_path / "lab.toml"
    (grade,) = grading.grades([one], lab, **limits, jobs=1, done=lambda _: None)
    return grade, file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "sleep", "error"),
    [
        (1, 0.5, "detached.py: no controller; allowed: one class derived from longfat.CongestionController"),
        (1, 100.0, "no result within 20 s: in <module> (detached.py, line 9)"),
        (400_000_000, 100.0, "more memory than 400 MB"),
    ],
    ids=["ends", "exceeds its time", "exceeds its memory"],
)
def test_processes_with_their_own_session_are_limited(
    tmp_path: Path, size: int, sleep: float, error: str
) -> None:
    seconds = 20 if "within" in error else 80
    grade, file = _graded(tmp_path, size=size, sleep=sleep, seconds=seconds, memory=400_000_000)
    assert grade.error == error
    assert grade.seconds < 70
    assert int(file.read_text()) not in {entry.pid for entry in process_tree.processes()}


ORPHAN = """
import subprocess
import sys

program = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(150)'],"
    "start_new_session=True); print(child.pid)"
)
file = open({file!r}, "w")
subprocess.run([sys.executable, "-c", program], stdout=file, start_new_session=True)
import os
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_processes_without_parent_end_with_their_submission(tmp_path: Path) -> None:
    module, file = tmp_path / "orphan.py", tmp_path / "pid"
    module.write_text(ORPHAN.format(file=str(file)), encoding="utf-8")
    (grade,) = _grades(tmp_path, grading.Submission("orphan", module))
    assert grade.error == "exit code 0"
    assert int(file.read_text()) not in {entry.pid for entry in process_tree.processes()}


def _grades(tmp_path: Path, *found: grading.Submission) -> list[grading.Grade]:
    lab = tmp_path / "lab.toml"
    lab.write_text(LAB, encoding="utf-8")
    return grading.grades(list(found), lab, seconds=60, memory=2 * 10**9, jobs=1, done=lambda _: None)


@pytest.mark.slow
def test_errors_contain_no_control_characters(tmp_path: Path) -> None:
    module = tmp_path / "escapes.py"
    module.write_text('raise ValueError("\\x1b]0;owned\\x07\\x1b[2J")', encoding="utf-8")
    exits = tmp_path / "exits.py"
    exits.write_text(
        'import os, sys\nsys.stderr.write("\\x1b[2Jgone")\nsys.stderr.flush()\nos._exit(7)', encoding="utf-8"
    )
    missing = grading.Submission("two", None, "2 files (\x1b[2J.py, b.py); allowed: one")
    for grade in _grades(
        tmp_path, grading.Submission("escapes", module), grading.Submission("exits", exits), missing
    ):
        assert grade.error.isprintable()
        assert "[2J" in grade.error


def test_signals_without_a_name_are_reported(tmp_path: Path) -> None:
    module = tmp_path / "signal.py"
    module.write_text("import os\nos.kill(os.getpid(), 40)", encoding="utf-8")
    (grade,) = _grades(tmp_path, grading.Submission("signal", module))
    assert grade.error.startswith("killed by ")
    assert grade.error.endswith("(40)")


@pytest.mark.slow
def test_the_analysis_of_a_submission_fits_into_its_limit(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB.replace('"4s"', '"2s"'), encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text(LAB.replace('"4s"', '"2s"'), encoding="utf-8")
    (grade,) = grading.grades(
        [grading.Submission("study", study)],
        tmp_path / "lab.toml",
        seconds=40,
        memory=800 * 10**6,
        jobs=1,
        done=lambda _: None,
    )
    assert grade.error == ""
    assert "not run" not in grade.verdicts.values()


def test_processes_are_those_of_ps() -> None:
    listed = (process_tree.processes, process_tree.from_ps)
    found = [next(one for one in list_them() if one.pid == os.getpid()) for list_them in listed]
    assert found[0][:3] == found[1][:3] == (os.getpid(), os.getppid(), os.getpgrp())
    assert found[0].resident == pytest.approx(found[1].resident, rel=0.1)


def test_submissions_share_a_look_at_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def looked() -> list[process_tree.Entry]:
        looks.append(1)
        return []

    monkeypatch.setattr(process_tree, "processes", looked)
    shared = process_tree.Processes()
    assert shared.now(60.0) is shared.now(60.0)
    assert len(looks) == 1
    shared.now(0.0)
    assert len(looks) == 2


def test_stopped_grades_start_no_process(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    module = tmp_path / "one.py"
    module.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    found = [grading.Submission("none", None, "no file"), *[grading.Submission("one", module)] * 3]

    def interrupt(_: grading.Grade) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grading.grades(found, tmp_path / "lab.toml", seconds=600, memory=2 * 10**9, jobs=1, done=interrupt)
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_files_of_a_submission_are_limited(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    module = tmp_path / "writes.py"
    module.write_text("file = open('large', 'wb')\nfile.truncate(300_000_000)", encoding="utf-8")
    (grade,) = grading.grades(
        [grading.Submission("writes", module)],
        tmp_path / "lab.toml",
        seconds=60,
        memory=2 * 10**9,
        jobs=1,
        done=lambda _: None,
    )
    assert "File too large" in grade.error


def test_a_result_that_a_submission_writes_must_be_complete(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB, encoding="utf-8")
    module = tmp_path / "forged.py"
    module.write_text(
        "import inspect, os, pathlib\n"
        "frames = inspect.getouterframes(inspect.currentframe())\n"
        "task = next(one.frame.f_locals['task'] for one in frames if 'task' in one.frame.f_locals)\n"
        'pathlib.Path(task[\'result\']).write_text(\'{"verdicts": [], "details": {}, "error": 1}\')\n'
        "os._exit(7)\n",
        encoding="utf-8",
    )
    (grade,) = grading.grades(
        [grading.Submission("forged", module)],
        tmp_path / "lab.toml",
        seconds=60,
        memory=2 * 10**9,
        jobs=1,
        done=lambda _: None,
    )
    assert (grade.holds, grade.error) == (0, "exit code 7")


def test_tables_contain_no_formulas_and_no_control_characters() -> None:
    grade = grading.Grade("=cmd()", {"faster": "holds"}, error="@x\x1b[2J\tb\nc")
    (row,) = grading.rows([grade])
    assert row["submission"] == "'=cmd()"
    assert row["error"].startswith("'@x")
    assert row["error"].isprintable()


def test_names_of_submissions_are_unique(tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "mine.py").touch()
    (tmp_path / "anna.py").touch()
    with pytest.raises(ValueError, match="2 submissions are named anna; names must be unique"):
        grading.submissions(tmp_path)


def test_hidden_files_are_no_submissions(tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    for name in ("mine.py", "._mine.py", "_help.py"):
        (tmp_path / "anna" / name).touch()
    (one,) = grading.submissions(tmp_path)
    assert one.file == tmp_path / "anna" / "mine.py"


def test_claims_cannot_have_the_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(LAB.replace('"faster"', '"seconds"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"claim seconds: the table of grades has a column of this name"):
        grading.grades([], tmp_path / "lab.toml", seconds=1, memory=1, jobs=1, done=lambda _: None)


def test_folders_without_submissions_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no submissions; allowed: files and folders"):
        grading.submissions(tmp_path)
    with pytest.raises(ValueError, match="no such folder"):
        grading.submissions(tmp_path / "missing")


def test_handouts_have_questions_instead_of_claims(lab: Path) -> None:
    text = handout_of(load_study(lab / "lab.toml"))
    assert "# 1. The controller is faster than Reno\n# 2. It retransmits at most 1000 packets\n" in text
    assert '\n# Hand in a protocol "submission": this study with another one, or a Python file' in text
    made = tomllib.loads(text)
    given = tomllib.loads(LAB)
    shown = tomllib.loads(handout_of(load_study({**given, "show": ["goodput", "rtt_p50"]})))["show"]
    assert shown == ["goodput", "rtt_p50"]
    assert made.keys() == given.keys() - {"claims", "notes"}
    assert [one["name"] for one in made["protocols"]] == ["submission", "reno"]
    assert made["workload"] == given["workload"]
