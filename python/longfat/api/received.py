"""The files that `receive` has stored, from the events of the native part."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longfat.api.quantities import of_parameter
from longfat.system.parameters import ParameterError


@dataclass
class ReceivedFiles:
    """Received files, failures, and running transfers, as plain data."""

    files: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    """Stored files: `peer`, `name`, `size` (B), `already` (was there before) and `seconds`."""
    failures: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    """Failed files: `peer`, `name` (None for a connection) and `reason`."""
    active: dict[str, dict[str, Any]] = field(default_factory=dict, kw_only=True)
    """Running transfers by key: `peer`, `name` and `size`."""

    code: str | None = field(default=None, kw_only=True)
    """The code for the next sender, if they need one."""

    def record(self, event: Mapping[str, Any]) -> bool:
        """Adds an event of the native part; returns whether it contains anything new."""
        kind = event["event"]
        if kind == "started":
            self.active[key_of(event)] = {name: event[name] for name in ("peer", "name", "size")}
        elif kind == "stored":
            self.active.pop(key_of(event), None)
            self.files.append({key: event[key] for key in ("peer", "name", "size", "already", "seconds")})
        elif kind == "failed":
            self.active.pop(key_of(event), None)
            self.failures.append({key: event[key] for key in ("peer", "name", "reason")})
        elif kind == "next_code":
            self.code = event["code"]
        elif kind == "disconnected" and event["reason"] is not None:
            # Files that failed with their connection were reported one by one.
            if any(failure["peer"] == event["peer"] for failure in self.failures):
                return False
            self.failures.append({"peer": event["peer"], "name": None, "reason": event["reason"]})
        return True


def key_of(event: Mapping[str, Any]) -> str:
    """Returns the key of a transfer: the peer and its number of the file, since files may be renamed."""
    return f"{event['peer']} {event['file']}"


def limits_of(
    one_time: bool, once: bool, max_connections: int, max_bytes: str | None, dotfiles: bool, executables: bool
) -> dict[str, Any]:
    """Returns the limits of a receiver for the native part. Raises ParameterError.

    With `one_time`, a code is valid for one sender.
    """
    return {
        "one_time": one_time,
        "once": once,
        "max_connections": max_connections,
        "max_bytes": None if max_bytes is None else int(of_parameter("max_bytes", max_bytes, "size")),
        "dotfiles": dotfiles,
        "executables": executables,
    }


@contextmanager
def prepared_folder(directory: Path | None) -> Iterator[Path]:
    """Yields the folder for the files; creates it if it is missing, or a new one if none is given.

    A folder that it created does not remain empty after an error. Raises ParameterError, before any sender
    connects, if files cannot be stored in it.
    """
    if directory is None:
        names = (Path(f"received-{number}" if number else "received") for number in itertools.count())
        directory = next(name for name in names if not os.path.lexists(name))
    is_new = not directory.exists() and not directory.is_symlink()
    if is_new:
        try:
            directory.mkdir()
        except OSError as error:
            raise ParameterError("", f"{{dir}} {directory}: cannot be created: {error.strerror}") from None
    if not directory.is_dir():
        raise ParameterError("", f"{{dir}} {directory}: is a file, not a folder")
    try:
        # Also root cannot write everywhere.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ParameterError("", f"{{dir}} {directory}: cannot be written to: {error.strerror}") from None
    try:
        yield directory
    except OSError:
        if is_new:
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise
