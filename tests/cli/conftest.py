"""Real `longfat` processes on loopback, observed through their output."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
from tests.conftest import command, only_lines
from tests.waiting import PATIENCE_S, wait_until

from longfat import _native
from longfat.cli import main

CODE = _native.new_code()
"""The default code of transfers."""


class Running:
    """A running command. It writes to files, so it never blocks on a reader."""

    def __init__(
        self,
        folder: Path,
        arguments: tuple[object, ...],
        prepare: Callable[[], None] | None,
        stdin: TextIO | None,
    ) -> None:
        number = len(list(folder.glob("*.err")))
        self._out, self._err = folder / f"{number}.out", folder / f"{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command(*arguments),
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=out,
                stderr=err,
                preexec_fn=prepare,  # noqa: PLW1509 - there are no threads here
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def document(self) -> dict[str, Any]:
        content = json.loads(self.out)
        assert isinstance(content, dict)
        return content

    def events(self) -> list[dict[str, Any]]:
        """Returns the objects of an output of JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    def wait_for(self, pattern: str) -> str:
        """Waits until standard error matches the pattern; returns the match or its group."""
        end = time.monotonic() + PATIENCE_S
        while not (match := re.search(pattern, self.err)):
            assert self.process.poll() is None, self.err
            assert time.monotonic() < end, self.err
            time.sleep(0.01)
        return match[1] if match.groups() else match[0]

    def address(self) -> str:
        return self.wait_for(r"Listening on (\S+)")

    def finish(self, number: int | None = None) -> int:
        """Sends a signal, if given, and waits for the process to exit; returns the exit code."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        assert "Traceback" not in self.err, self.err
        return code

    def fails_with(self, *words: str, code: int = 1) -> str:
        """Waits for a failure with one error line that contains these words; returns the line.

        Lines of progress, which appear every few seconds, may precede it.
        """
        assert self.finish() == code, self.err
        lines = self.err.splitlines()
        progress = [line for line in lines if line.endswith("s left") and not line.startswith("longfat: ")]
        lines = [line for line in lines if line not in progress]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("longfat: ")
        for word in words:
            assert word in lines[0]
        return lines[0]


Start = Callable[..., Running]
Make = Callable[..., Path]
Refused = Callable[[list[str], int, list[str]], None]
Receive = Callable[..., tuple[Running, str]]

SIZE = 8_000_000


def at_rate(rate: str) -> tuple[str, str]:
    """Returns options that limit the sending rate, so that there is time to disturb the transfer."""
    return "--congestion", f'{{ kind = "fixed", window = 1000, rate = "{rate}" }}'


SLOW = at_rate("8Mbit/s")
"""A file of `SIZE` takes 8 s, which suffices for other processes to start on a busy machine."""


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the code of transfers, so that tests need no option for it."""
    monkeypatch.setenv("LONGFAT_CODE", CODE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `longfat` with arguments; kills what still runs after the test."""
    running: list[Running] = []
    folder = tmp_path / "output"
    folder.mkdir()

    def _start(
        *arguments: object, prepare: Callable[[], None] | None = None, stdin: TextIO | None = None
    ) -> Running:
        running.append(Running(folder, arguments, prepare, stdin))
        return running[-1]

    yield _start
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Refused]:
    """Runs `longfat` in this process; it must exit at once with this code and lines with these words."""
    before = signal.getsignal(signal.SIGTERM)

    def _refused(words: list[str], code: int, reported: list[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["longfat", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        only_lines(shown.err, reported)
        assert shown.out == ""

    yield _refused
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of received files."""
    folder = tmp_path / "received"
    folder.mkdir()
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Creates files of random bytes."""

    def _make(name: str, size: int, seed: int = 1) -> Path:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_bytes(random.Random(seed).randbytes(size))
        return path

    return _make


@pytest.fixture
def receive(start: Start, place: Path) -> Callable[..., tuple[Running, str]]:
    """Starts a receiver; returns it and its address."""

    def _receive(*options: object, **more: Any) -> tuple[Running, str]:
        listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        running = start("recv", "--dir", place, *listen, *options, **more)
        return running, running.address()

    return _receive


def partial(place: Path, name: str = "file.bin") -> Path:
    return place / f".{name}.longfat-part"


def under_way(place: Path, size: int = SIZE // 8) -> None:
    """Waits until `size` bytes of the file have arrived."""
    wait_until(lambda: partial(place).exists() and partial(place).stat().st_size >= size)


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())
