"""The process that holds a congestion controller in the kernel; with it the controller goes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from longfat.kernel.build import HOLDER

PREFIX = "lf_"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0


class HolderError(Exception):
    """The kernel did not take a controller, or has it no longer."""


def check(folder: Path, name: str) -> None:
    """Has the kernel verify a controller that was compiled to `folder`, without registering it.

    Raises HolderError with what the kernel says against it.
    """
    with _Process([str(folder / HOLDER), "check", str(folder / f"{name}.o")]) as process:
        process.answer()


class Holder:
    """A controller in the kernel until this closes or this process ends, however it ends.

    Raises HolderError where the kernel does not take it.
    """

    def __init__(self, folder: Path, name: str, parameters: Mapping[str, int]) -> None:
        """Registers the controller that was compiled to `folder`, with parameters that it knows."""
        settings = [f"{key}={value}" for key, value in parameters.items()]
        # A descriptor of this process ends the holder with it, whichever of its threads started it.
        parent = os.pidfd_open(os.getpid())
        try:
            command = [str(folder / HOLDER), "hold", str(folder / f"{name}.o"), PREFIX + name, str(parent)]
            self._process = _Process([*command, *settings], keep=parent)
        finally:
            os.close(parent)
        try:
            answer = self._process.answer()
        except HolderError:
            self._process.close()
            raise
        self.kernel_name: str = answer["name"]
        """As the kernel calls it; numbered where other processes hold the same controller."""
        self.link: int = answer["link"]
        """The kernel's number of the registration."""
        self.map: int = answer["map"]
        """The kernel's number of the controller itself, which lasts as long as a socket uses it."""

    @property
    def pid(self) -> int:
        """Number of the process that holds it."""
        return self._process.popen.pid

    def verify(self) -> None:
        """Raises HolderError where the process that held the controller has ended."""
        status = self._process.popen.poll()
        if status is not None:
            raise HolderError(
                f"{self.kernel_name} is no longer in the kernel: the process that held it ended ({status})"
            )

    def close(self) -> None:
        """Takes the controller back; sockets that use it keep it until they are closed."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Process:
    """The compiled program, which answers with one line."""

    def __init__(self, command: list[str], keep: int | None = None) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, see close()
        try:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                pass_fds=[] if keep is None else [keep],
                # The terminal's Ctrl-C is for us: the controller stays while connections are being closed.
                start_new_session=True,
            )
        except OSError as error:
            self._complaints.close()
            raise HolderError(f"{command[0]} cannot be started: {error.strerror}") from error

    def answer(self) -> dict[str, Any]:
        assert self.popen.stdout is not None
        timer = threading.Timer(START_TIMEOUT_S, self.popen.kill)
        timer.start()
        try:
            line = self.popen.stdout.readline()
        finally:
            timer.cancel()
        try:
            content: dict[str, Any] = json.loads(line)
        except ValueError:
            content = {"error": "the process that holds it did not answer"}
        if "error" not in content:
            return content
        self._complaints.seek(0)
        said = _gist(self._complaints.read().decode(errors="replace"))
        raise HolderError(f"{content['error']} ({said})" if said else content["error"])

    def close(self) -> None:
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.popen.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self._complaints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _gist(log: str) -> str:
    """The one line that tells most: the verifier's last word, else what libbpf says last."""
    lines = [line for line in log.splitlines() if line and not line.startswith(("processed ", "-- END "))]
    verifier = [line for line in lines if not line.startswith("libbpf: ")]
    return (verifier or lines or [""])[-1].removeprefix("libbpf: ")
