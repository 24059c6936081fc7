"""Grades of submissions: each runs in its own process, with limits of time and memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longfat.api.transfer_progress import printable
from longfat.extensions.names import FILE_SUFFIX
from longfat.study import load_study
from longfat.study.reading import read_study
from longfat.system.interpreter import python_command
from longfat.system.process_tree import Processes, ProcessTree

STUDY_SUFFIX = ".toml"
ALLOWED = f"a study (*{STUDY_SUFFIX}) or a controller (*{FILE_SUFFIX})"
NOT_RUN = "not run"
"""The verdict of the claims of a submission without a result."""
VERDICTS = {"holds", "fails", "undecided", NOT_RUN}

MARK = "LONGFAT_SUBMISSION"
"""The environment variable of all processes of a submission."""
_HIDDEN = (".", "_")
"""Names of files and folders that are no submissions start with these."""


@dataclass(frozen=True)
class Grade:
    """The result of a submission."""

    submission: str
    """Name of the file or folder."""
    verdicts: dict[str, str]
    """Verdict of each claim of the lab, by its id; "not run" without a result."""
    details: dict[str, str] = field(default_factory=dict)
    """What decided each claim, by its id."""
    error: str = ""
    """Why there is no result, or the errors of failed trials."""
    seconds: float = 0.0
    """Duration of the submission's process in s."""

    @property
    def holds(self) -> int:
        """The number of claims that hold."""
        return sum(verdict == "holds" for verdict in self.verdicts.values())


@dataclass(frozen=True)
class Submission:
    """A file to grade, with the name of its author's entry in the folder."""

    name: str
    file: Path | None
    problem: str = ""


def submissions(folder: Path) -> list[Submission]:
    """Returns the submissions in a folder: files, and folders with one file.

    Raises:
        ValueError: if there is none, or if two have the same name.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; allowed: a folder of submissions")
    found = [one for entry in sorted(folder.iterdir()) if (one := _submission(entry)) is not None]
    if not found:
        raise ValueError(f"{folder}: no submissions; allowed: files and folders with {ALLOWED}")
    for name, count in Counter(one.name for one in found).items():
        if count > 1:
            raise ValueError(
                f"{folder}: {count} submissions are named {printable(name)}; names must be unique"
            )
    return found


def _submission(entry: Path) -> Submission | None:
    if entry.name.startswith(_HIDDEN):
        return None
    if entry.is_file():
        return Submission(entry.stem, entry) if entry.suffix in (STUDY_SUFFIX, FILE_SUFFIX) else None
    files = sorted(file for file in entry.iterdir() if file.is_file() and not file.name.startswith(_HIDDEN))
    # A study can name a controller next to it.
    for suffix in (STUDY_SUFFIX, FILE_SUFFIX):
        of_kind = [file for file in files if file.suffix == suffix]
        if len(of_kind) == 1:
            return Submission(entry.name, of_kind[0])
        if of_kind:
            names = ", ".join(file.name for file in of_kind)
            return Submission(entry.name, None, f"{len(of_kind)} files ({names}); allowed: one")
    return Submission(entry.name, None, f"no file; allowed: {ALLOWED}")


def grades(
    found: list[Submission],
    lab: str | Path,
    *,
    seconds: float,
    memory: int,
    jobs: int,
    done: Callable[[Grade], None],
) -> list[Grade]:
    """Runs submissions, and returns their grades in the same order.

    Args:
        found: The submissions.
        lab: Study file, or name of a built-in study, with the claims.
        seconds: Limit of the duration of each, in s.
        memory: Limit of the memory of each, in bytes.
        jobs: Number of concurrent submissions.
        done: Called with each grade, in the same order.

    Raises:
        ValueError: if the lab has no claims, or one with the name of a column in the table of grades.
        KeyboardInterrupt: on Ctrl-C, after the processes were stopped.
    """
    claims = load_study(lab).claims
    if not claims:
        raise ValueError(f"{lab}: no claims; a lab study needs claims, which are graded")
    if taken := {claim.id for claim in claims} & {*_FIRST, *_LAST}:
        raise ValueError(
            f"{lab}: claim {min(taken)}: the table of grades has a column of this name; rename it"
        )
    limits = {"seconds": seconds, "memory": memory}
    running = _Running({"lab": read_study(lab).data, **limits}, [claim.id for claim in claims])

    graded: list[Grade] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for grade in pool.map(running.grade, found):
                graded.append(grade)
                done(grade)
        except BaseException:
            running.stop()
            raise
    return graded


class _Running:
    """The processes of submissions."""

    def __init__(self, common: dict[str, Any], claims: list[str]) -> None:
        self._common = common
        self._missing = dict.fromkeys(claims, NOT_RUN)
        self._stopped = threading.Event()
        self._processes = Processes()

    def stop(self) -> None:
        """Stops all, and starts no more."""
        self._stopped.set()

    def grade(self, submission: Submission) -> Grade:
        """Runs a submission."""
        if submission.file is None or self._stopped.is_set():
            return Grade(submission.name, self._missing, error=printable(submission.problem))
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="longfat-grade-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            code, error = self._run(submission.file, folder)
            spent = time.monotonic() - started
            result = None if error else self._result(folder)
            if result is None:
                error = error or self._why(submission.file, folder, code, spent)
                return Grade(submission.name, self._missing, error=printable(error), seconds=spent)
        verdicts, details = ({**result[key]} for key in ("verdicts", "details"))
        # Grades are handed out, and folders of the teacher's machine mean nothing to students.
        error = result["error"].replace(f"{submission.file.resolve().parent}{os.sep}", "")
        return Grade(submission.name, {**self._missing, **verdicts}, details, printable(error), spent)

    def _run(self, file: Path, folder: Path) -> tuple[int, str]:
        """Runs the process of a submission; returns its exit code, and why it was stopped early."""
        task = {
            **self._common,
            "submission": str(file.resolve()),
            "out": str(folder / "run"),
            "place": str(folder / _PLACE),
            "result": str(folder / _RESULT),
        }
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        # Pipes would stay open as long as any process that the submission starts.
        with (folder / "task.json").open("rb") as given, (folder / _ERRORS).open("wb") as errors:
            process = subprocess.Popen(
                python_command("-m", "longfat.api._graded"),
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=file.parent,
                env={**os.environ, MARK: folder.name},
                start_new_session=True,
            )
        tree = ProcessTree(process, f"{MARK}={folder.name}", self._processes)
        try:
            why = self._watch(process, tree)
        finally:
            tree.kill()
            process.wait()
        return process.returncode, why

    def _watch(self, process: subprocess.Popen[bytes], tree: ProcessTree) -> str:
        """Waits for the end of a process, or of a limit; returns the exceeded one, or nothing."""
        memory, end = self._common["memory"], time.monotonic() + self._common["seconds"] + _GRACE_S
        while time.monotonic() < end and not self._stopped.is_set():
            if tree.memory(_LOOK_S) > memory:
                return f"more memory than {memory / 1e6:.0f} MB"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
                break
        return ""

    def _result(self, folder: Path) -> dict[str, Any] | None:
        """Returns the result that a process has written; None without a complete one."""
        try:
            result = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
            verdicts, details = result["verdicts"], result["details"]
            known = set(verdicts) | set(details) <= set(self._missing) and set(verdicts.values()) <= VERDICTS
            texts = [result["error"], *details.values()]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return result if known and all(isinstance(text, str) for text in texts) else None

    def _why(self, file: Path, folder: Path, code: int, spent: float) -> str:
        """Returns why a process has no result."""
        seconds = self._common["seconds"]
        if spent >= seconds:
            return f"no result within {seconds:g} s{_place(folder / _PLACE, file)}"
        return _last(_end_of(folder / _ERRORS), code)


_GRACE_S = 3.0
"""Seconds that a process has to report where it is after its limit."""
_LOOK_S = 0.1
"""Seconds between two looks at the memory."""
_PLACE, _RESULT, _ERRORS = "place.txt", "result.json", "errors.txt"
_READ_BYTES = 4096
"""The part at the end of a process's errors that is read."""


def _end_of(file: Path) -> bytes:
    with file.open("rb") as errors:
        errors.seek(max(0, file.stat().st_size - _READ_BYTES))
        return errors.read(_READ_BYTES)


def _place(stacks: Path, submission: Path) -> str:
    """Returns where a late submission was, from the stacks of its threads; empty if it is unknown."""
    try:
        lines = stacks.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        if f'{os.sep}{submission.name}"' in line or f'"{submission.name}"' in line:
            _, _, rest = line.partition('", line ')
            number, _, function = rest.partition(" in ")
            return f": in {function} ({submission.name}, line {number})"
    return ""


def _last(errors: bytes, code: int) -> str:
    """Returns the last line of a failed process."""
    lines = errors.decode(errors="replace").split("\n")
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if code < 0:
        return f"killed by {signal.strsignal(-code) or 'signal'} ({-code})"
    return text or f"exit code {code}"


def rows(found: list[Grade]) -> Iterator[dict[str, Any]]:
    """Yields a row of the table of grades for each submission."""
    for grade in found:
        first, last = ({name: of(grade) for name, of in columns.items()} for columns in (_FIRST, _LAST))
        yield {**first, **grade.verdicts, **last}


def cell(text: str) -> str:
    """Returns a text for a cell of a table, which spreadsheets do not read as a formula.

    >>> cell("anna"), cell("=1+1"), cell("@SUM(A1)")
    ('anna', "'=1+1", "'@SUM(A1)")
    """
    text = printable(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


_FIRST: dict[str, Callable[[Grade], Any]] = {
    "submission": lambda grade: cell(grade.submission),
    "holds": lambda grade: grade.holds,
    "claims": lambda grade: len(grade.verdicts),
}
"""The columns of the table of grades before those of claims."""
_LAST: dict[str, Callable[[Grade], Any]] = {
    "seconds": lambda grade: round(grade.seconds, 1),
    "error": lambda grade: cell(grade.error),
}
"""The columns after those of claims."""
_FORMULA = ("=", "+", "-", "@")
