"""The process that keeps a congestion controller in the kernel, which removes it when the process exits."""

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
    """The kernel rejected a controller, or removed it."""


def check(folder: Path, name: str) -> None:
    """Lets the kernel verify a controller compiled to `folder`, without registering it.

    Raises HolderError with the kernel's reason.
    """
    with _Process([str(folder / HOLDER), "check", str(folder / f"{name}.o")]) as process:
        process.answer()


class Holder:
    """A controller in the kernel, until `close` or the end of this process.

    Raises HolderError if the kernel rejects it.
    """

    def __init__(self, folder: Path, name: str, parameters: Mapping[str, int]) -> None:
        """Registers the controller compiled to `folder`, with these parameters."""
        settings = [f"{key}={value}" for key, value in parameters.items()]
        # The holder watches this process by its descriptor, whichever thread started it.
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
        """The kernel's name, with a number if other processes loaded the same controller."""
        self.link: int = answer["link"]
        """The kernel's ID of the registration."""
        self.map: int = answer["map"]
        """The kernel's ID of the controller, which exists as long as a socket uses it."""

    @property
    def pid(self) -> int:
        """ID of the holder process."""
        return self._process.popen.pid

    def verify(self) -> None:
        """Raises HolderError if the holder process has exited."""
        status = self._process.popen.poll()
        if status is not None:
            raise HolderError(f"{self.kernel_name} is no longer in the kernel: its holder exited ({status})")

    def close(self) -> None:
        """Removes the controller; sockets that use it keep it until they are closed."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Process:
    """The compiled holder program, which answers with one line."""

    def __init__(self, command: list[str], keep: int | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, see close()
        try:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=[] if keep is None else [keep],
                # Keeps the terminal's Ctrl-C away: the controller must stay until connections are closed.
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
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
            content = {"error": "the holder process did not answer"}
        if "error" not in content:
            return content
        self._errors.seek(0)
        reason = _gist(self._errors.read().decode(errors="replace"))
        raise HolderError(f"{content['error']} ({reason})" if reason else content["error"])

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
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _gist(log: str) -> str:
    """Returns the most informative line: the verifier's last one, else libbpf's last one."""
    lines = [line for line in log.splitlines() if line and not line.startswith(("processed ", "-- END "))]
    verifier = [line for line in lines if not line.startswith("libbpf: ")]
    return (verifier or lines or [""])[-1].removeprefix("libbpf: ")
