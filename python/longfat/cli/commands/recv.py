"""`longfat recv`: takes files from whoever sends them, into one folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments import addresses

if TYPE_CHECKING:
    from longfat.cli.display.transfers import Transfers


def recv(
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to listen. By default for this machine alone; 0.0.0.0:9000 lets others in.",
        ),
    ] = addresses.LISTEN,
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="The folder that files go to; it must be there.")
    ] = Path(),
    once: Annotated[
        bool, typer.Option("--once", help="End after one sender; with exit code 1 if it failed.")
    ] = False,
    max_connections: Annotated[
        int,
        typer.Option(min=1, max=4096, help="Senders at a time; others are told that the receiver is busy."),
    ] = 32,
    as_json: Annotated[
        bool, typer.Option("--json", help="At the end print one JSON document on standard output.")
    ] = False,
) -> None:
    """Receive files from longfat send until Ctrl-C.

    A file appears in the folder when it is whole and its hash agrees; until then it is
    .NAME.longfat-part, from which a later transfer resumes. A transfer that fills the disk removes what
    it wrote. No file is ever replaced: another one of the same name gets a number. Whoever reaches the
    address may send: open it to networks you trust.

    \b
    Examples:
      longfat recv
      longfat recv --listen 0.0.0.0:9000 --dir incoming
      longfat recv --listen 127.0.0.1:0 --dir incoming --once
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.display.transfers import transfers
    from longfat.cli.signals import end_like_ctrl_c

    address = addresses.listening(listen, "--listen")
    check_folder(directory)
    end_like_ctrl_c()
    display = transfers()
    received = Received(directory, display)
    stopped = False
    try:
        _native.receive_files(address, str(directory), once, max_connections, received.handle)
    except KeyboardInterrupt:
        stopped = True
    finally:
        cut = len(received.active)
        display.close()
    if as_json:
        typer.echo(json.dumps(received.to_json(), indent=2, ensure_ascii=False))
    else:
        typer.echo(received.summary())
    if stopped and (cut or once):
        raise typer.Exit(130)
    if once and received.failures:
        raise typer.Exit(1)


def check_folder(directory: Path) -> None:
    """Raises ValueError where no file could be received into a folder, before anybody sends one."""
    if not directory.exists():
        raise ValueError(f"--dir {directory}: there is no such folder (mkdir -p makes it)")
    if not directory.is_dir():
        raise ValueError(f"--dir {directory}: is a file, not a folder")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ValueError(f"--dir {directory}: this user may not write into it")


@dataclass
class Received:
    """What has been received, told as it happens."""

    directory: Path
    display: Transfers
    files: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    active: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Transfers that have begun and not ended, by key: `peer`, `name` and `size`."""

    def handle(self, text: str) -> None:
        """Takes in an event of `_native.receive_files`."""
        event = json.loads(text)
        handler = getattr(self, f"_{event['event']}", None)
        if handler is not None:
            handler(event)

    def _listening(self, event: dict[str, Any]) -> None:
        address = event["address"]
        self.display.note(f"Listening at {address} for files into {self.directory} (Ctrl-C ends)")
        if addresses.is_open(address):
            self.display.note("Whoever reaches this address may send files; nothing is encrypted.")

    def _started(self, event: dict[str, Any]) -> None:
        from longfat.cli.display.transfers import size

        key = _key(event)
        self.active[key] = {name: event[name] for name in ("peer", "name", "size")}
        resumed = f", going on at {size(event['resumed'])}" if event["resumed"] else ""
        self.display.note(f"{event['peer']}: {event['name']}: {size(event['size'])} to come{resumed}")
        self.display.begin(key, event["name"], event["size"], event["resumed"])

    def _progress(self, event: dict[str, Any]) -> None:
        self.display.advance(_key(event), event["done"])

    def _stored(self, event: dict[str, Any]) -> None:
        from longfat.cli.display.transfers import size
        from longfat.presentation.formatting import quantity

        self._end(event)
        name = event["offered"]
        self.files.append({key: event[key] for key in ("peer", "name", "size", "already", "seconds")})
        renamed = f" as {event['name']}" if event["name"] != name else ""
        how = (
            "is there already"
            if event["already"]
            else f"stored{renamed} after {quantity(event['seconds'], 's')}"
        )
        self.display.note(f"{event['peer']}: {name}: {how}, {size(event['size'])}")

    def _failed(self, event: dict[str, Any]) -> None:
        self._end(event)
        self.failures.append({key: event[key] for key in ("peer", "name", "reason")})
        self.display.note(f"{event['peer']}: {event['name']}: failed: {event['reason']}")

    def _disconnected(self, event: dict[str, Any]) -> None:
        # Where files failed with the connection, they were told one by one.
        if event["reason"] is not None and not any(f["peer"] == event["peer"] for f in self.failures):
            self.failures.append({"peer": event["peer"], "name": None, "reason": event["reason"]})
            self.display.note(f"{event['peer']}: {event['reason']}")

    def _end(self, event: dict[str, Any]) -> None:
        """Takes a transfer off the list of those that go on."""
        key = _key(event)
        self.display.end(key)
        self.active.pop(key, None)

    def to_json(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        cut = [file["name"] for file in self.active.values()]
        return {"dir": str(self.directory), "files": self.files, "failures": self.failures, "cut": cut}

    def summary(self) -> str:
        """What was received, in a line."""
        from longfat.cli.display.transfers import files, size

        already = sum(file["already"] for file in self.files)
        parts = [f"{files(len(self.files))} received, {size(sum(file['size'] for file in self.files))}"]
        if already:
            parts.append(f"{already} of them there already")
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        if cut := [file["name"] for file in self.active.values()]:
            parts.append(f"cut: {', '.join(cut)} (sent again, it goes on from there)")
        return "; ".join(parts)


def _key(event: dict[str, Any]) -> str:
    """What names a transfer: the sender's number of the file, whatever name it is stored under."""
    return f"{event['peer']} {event['file']}"
