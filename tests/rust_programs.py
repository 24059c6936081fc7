"""Compiles the test programs of all crates and runs several of them at the same time.

`cargo test` runs one program after another. Programs that wait for networks and timers leave processors idle,
which others use here. Each program prints one line, or all its output if it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
CARGO_TEST = ("cargo", "test", "--locked", "--workspace", "--exclude", "longfat-benchmarks")
"""Without the crate of benchmarks, whose dependencies take long to compile."""
CARGO_PROGRAMS = ("nice", *CARGO_TEST, "--tests", "--no-run", "--message-format", "json-render-diagnostics")
"""With a low priority, because tests in Python run at the same time, and some of them measure time."""
CARGO_DOC = (*CARGO_TEST, "--no-fail-fast", "--doc", "--quiet")
ENVIRONMENT: dict[str, str] = tomllib.loads((ROOT / ".cargo/config.toml").read_text(encoding="utf-8"))["env"]
"""The variables that cargo sets for its tests."""
WAITING = ("longfat-emulation", "longfat-socket", "longfat-measurement", "longfat-proxy")
"""Crates whose tests take wall time. They start first, and their failed tests are repeated."""
AT_ONCE = 3
TIMEOUT_S = 1200
FAILED_TEST = re.compile(r"^    (\S+)$", re.MULTILINE)
"""A line of libtest's last list, with the name of a test."""


@dataclass(frozen=True)
class Program:
    """A compiled test program."""

    crate: str
    name: str
    """`lib` for unit tests; the name of the file otherwise."""
    file: str
    folder: Path
    """The folder of the crate, in which cargo runs its tests."""


@dataclass(frozen=True)
class Outcome:
    """The end of a test program."""

    program: Program
    failed: bool
    summary: str
    output: str

    @property
    def failed_tests(self) -> list[str]:
        """Names of the tests that failed; empty if the program ended otherwise."""
        return FAILED_TEST.findall(self.output.rpartition("\nfailures:\n")[2])


def build() -> list[Program]:
    """Compiles the test programs; exits with cargo's status if that fails."""
    done = subprocess.run(CARGO_PROGRAMS, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return programs(done.stdout)


def programs(messages: str) -> list[Program]:
    """Returns the test programs that cargo's messages list, those that wait first."""
    found = []
    for message in map(json.loads, messages.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = Path(message["manifest_path"]).parent
            kind = message["target"]["kind"][0]
            name = "lib" if kind in ("lib", "cdylib") else message["target"]["name"]
            found.append(Program(f"longfat-{folder.name}", name, message["executable"], folder))
    return sorted(found, key=lambda program: (program.crate not in WAITING, program.crate, program.name))


class Runner:
    """Runs test programs, and kills those that still run when it is closed."""

    def __init__(self, arguments: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(self, program: Program) -> Outcome:
        """Runs a program and prints its line, or its output if it fails."""
        started = time.monotonic()
        with tempfile.TemporaryFile() as output:
            status = self._wait(program, output)
            output.seek(0)
            text = output.read().decode(errors="replace")
        seconds = time.monotonic() - started
        result = next((line for line in reversed(text.splitlines()) if line.startswith("test result: ")), "")
        counts = result.removeprefix("test result: ").partition(". ")[2].partition("; finished")[0]
        failed = status != 0 or not result
        reason = f"exit status {status}; " if failed else ""
        title = f"{'FAILED' if failed else 'ok':6} {program.crate} {program.name}"
        summary = f"{title}: {reason}{counts}; {seconds:.1f} s"
        with self._guard:
            if not self._closed:
                print(f"{text}\n{summary}" if failed else summary, flush=True)
        return Outcome(program, failed, summary, text)

    def _wait(self, program: Program, output: IO[bytes]) -> int | str:
        """Returns the exit status of a program, which writes to a file."""
        with self._guard:
            if self._closed:
                return "not started"
            # A process group of its own, which can be killed as a whole.
            process = subprocess.Popen(
                [program.file, *self._arguments],
                cwd=program.folder,
                env={**ENVIRONMENT, **os.environ, "CARGO_MANIFEST_DIR": str(program.folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            return process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self._kill(process)
            return f"killed after {self._timeout_s:.0f} s"
        finally:
            with self._guard:
                self._running.discard(process)

    def close(self) -> None:
        """Kills running programs."""
        with self._guard:
            self._closed = True
            for process in self._running:
                self._kill(process)

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(found: Sequence[Program], arguments: Sequence[str], at_once: int = AT_ONCE) -> list[Outcome]:
    """Runs programs with arguments of libtest, several at once."""
    runner = Runner(arguments)
    with ThreadPoolExecutor(at_once) as pool:
        try:
            return list(pool.map(runner.run, found))
        except BaseException:
            runner.close()
            raise


def repeat(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Repeats failed tests that take wall time, one after another: other tests may have delayed them."""
    return [_repeated(outcome) for outcome in outcomes]


def _repeated(outcome: Outcome) -> Outcome:
    program, names = outcome.program, outcome.failed_tests
    if not (outcome.failed and names and program.crate in WAITING):
        return outcome
    print(f"Repeating {len(names)} failed tests of {program.crate} {program.name}: {', '.join(names)}")
    return Runner(["--exact", "--test-threads=1", *names]).run(program)


def skipped(file: Path) -> list[str]:
    """Returns lines with the reasons of skipped tests, which `crates/testing` has collected in a file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    reasons = Counter(line.partition(": ")[2] for line in lines)
    return [f"{count:4d} skipped: {reason}" for reason, count in reasons.most_common()]


def main() -> int:
    """Compiles and runs the test programs; returns the exit status."""
    parser = argparse.ArgumentParser(description="Run the Rust tests.")
    parser.add_argument("--no-run", action="store_true", help="only compile")
    parser.add_argument("--doc", action="store_true", help="also run the examples of doc comments")
    parser.add_argument("test", nargs="*", help="parts of the names of tests; all by default")
    options = parser.parse_args()
    # Background processes of a shell ignore Ctrl-C, and so would the tests.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    found = build()
    if options.no_run:
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reasons = Path(folder) / "skipped"
        os.environ["LONGFAT_SKIPPED"] = str(reasons)
        try:
            outcomes = repeat(run(found, options.test))
        except KeyboardInterrupt:
            return 130
        examples = subprocess.run(CARGO_DOC, cwd=ROOT, check=False).returncode if options.doc else 0
        notes = skipped(reasons)
    failed = [outcome.summary for outcome in outcomes if outcome.failed]
    failed += ["FAILED examples of doc comments"] if examples else []
    result = f"{len(failed)} failed" if failed else "all passed"
    seconds = time.monotonic() - started
    print(*notes, *failed, f"Rust: {len(outcomes)} test programs, {result}, in {seconds:.0f} s", sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
