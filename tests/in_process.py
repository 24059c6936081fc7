"""Runs `longfat` and examples in this process, which saves half a second of interpreter start."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from longfat.cli import main


def run(folder: Path, arguments: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder; returns its exit code and the output of it and its children."""
    words = ["longfat", *map(str, arguments)]
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(tempfile.TemporaryFile("w+b"))
        err = stack.enter_context(tempfile.TemporaryFile("w+b"))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.chdir(folder)
        patch.setattr(sys, "argv", words)
        stack.enter_context(_handlers())
        with _redirected(1, "stdout", out), _redirected(2, "stderr", err):
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return subprocess.CompletedProcess(words, code, _text(out), _text(err))


def execute(folder: Path, text: str, name: str) -> str:
    """Executes a Python program in a folder with its own namespace; its exceptions fail the test.

    Returns what it prints.
    """
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, _handlers(), contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        exec(compile(text, name, "exec"), {"__name__": "__main__"})  # the project's own examples
    return printed.getvalue()


@contextlib.contextmanager
def _redirected(number: int, name: str, file: IO[bytes]) -> Iterator[None]:
    """Redirects a standard stream to a file, for Python, the native module and child processes."""
    before, kept = getattr(sys, name), os.dup(number)
    before.flush()
    os.dup2(file.fileno(), number)
    setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    try:
        yield
    finally:
        getattr(sys, name).close()
        setattr(sys, name, before)
        os.dup2(kept, number)
        os.close(kept)


@contextlib.contextmanager
def _handlers() -> Iterator[None]:
    """Restores the signal handlers that a command may change."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
