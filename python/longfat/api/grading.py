"""Grades of submissions: each runs in its own process, with limits of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longfat.extensions.names import FILE_SUFFIX
from longfat.study import load_study
from longfat.study.reading import read_study
from longfat.system.interpreter import python_command

SUBMISSION = "submission"
"""The protocol of a lab study whose controller a submission replaces."""
STUDY_SUFFIX = ".toml"
ALLOWED = f"a study (*{STUDY_SUFFIX}) or a controller (*{FILE_SUFFIX})"
NOT_RUN = "not run"
"""The verdict of the claims of a submission without a result."""


@dataclass(frozen=True)
class Grade:
    """The result of a submission."""

    submission: str
    """Name of the file or folder."""
    verdicts: dict[str, str]
    """Verdict of each claim of the lab, by its id; "not run" without a result."""
    details: dict[str, str] = field(default_factory=dict)
    """What decided each claim."""
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
        ValueError: if there is none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; allowed: a folder of submissions")
    found = [one for entry in sorted(folder.iterdir()) if (one := _submission(entry)) is not None]
    if not found:
        raise ValueError(f"{folder}: no submissions; allowed: files and folders with {ALLOWED}")
    return found


def _submission(entry: Path) -> Submission | None:
    if entry.name.startswith((".", "_")):
        return None
    if entry.is_file():
        return Submission(entry.stem, entry) if entry.suffix in (STUDY_SUFFIX, FILE_SUFFIX) else None
    files = sorted(file for file in entry.iterdir() if file.is_file())
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
        ValueError: if the lab has no claims.
        KeyboardInterrupt: on Ctrl-C, after the processes were stopped.
    """
    claims = load_study(lab).claims
    if not claims:
        raise ValueError(f"{lab}: no claims; a lab study needs claims, which are graded")
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
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def stop(self) -> None:
        """Stops all, and starts no more."""
        self._stopped = True
        for process in list(self._processes):
            _kill(process)

    def grade(self, submission: Submission) -> Grade:
        """Runs a submission."""
        missing, seconds = self._missing, self._common["seconds"]
        if submission.file is None or self._stopped:
            return Grade(submission.name, missing, error=submission.problem)
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="longfat-grade-") as folder:
            task = {
                **self._common,
                "submission": str(submission.file.resolve()),
                "out": str(Path(folder) / "run"),
                "place": str(Path(folder) / "place.txt"),
                "result": str(Path(folder) / "result.json"),
            }
            process = subprocess.Popen(
                python_command("-m", "longfat.api._graded"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=submission.file.parent,
                start_new_session=True,
            )
            self._processes.add(process)
            late = False
            try:
                _, errors = process.communicate(json.dumps(task).encode(), timeout=seconds + _GRACE_S)
            except subprocess.TimeoutExpired:
                late = True
                _kill(process)
                _, errors = process.communicate()
            finally:
                self._processes.discard(process)
            spent = time.monotonic() - started
            result = _read(Path(task["result"]))
            if result is None:
                place = _place(Path(task["place"]), submission.file)
                late = late or spent >= seconds
                error = (
                    f"no result within {seconds:g} s{place}" if late else _last(errors, process.returncode)
                )
                return Grade(submission.name, missing, error=error, seconds=spent)
        verdicts = {**missing, **result["verdicts"]}
        return Grade(submission.name, verdicts, result["details"], result["error"], spent)


_GRACE_S = 3.0
"""Seconds that a process has to report where it is after its limit."""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


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
        return f"killed by {signal.Signals(-code).name}"
    return text or f"exit code {code}"


def rows(found: list[Grade]) -> Iterator[dict[str, Any]]:
    """Yields a row of the table of grades for each submission."""
    for grade in found:
        yield {
            "submission": grade.submission,
            "holds": grade.holds,
            "claims": len(grade.verdicts),
            **grade.verdicts,
            "seconds": round(grade.seconds, 1),
            "error": grade.error,
        }
