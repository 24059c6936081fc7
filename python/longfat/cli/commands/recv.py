"""`longfat recv`: receives files from `longfat send`."""

from __future__ import annotations

import ipaddress
import json
import queue
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.api import addresses
from longfat.api.protection import Protection, by_code
from longfat.api.received import ReceivedFiles, key_of, limits_of, prepared_folder
from longfat.cli import standard_output
from longfat.cli.arguments import protection

_FREQUENT = ("tick", "progress")
"""Events that --json does not print."""

if TYPE_CHECKING:
    from longfat.api.transfer_progress import Transfers


def recv(
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Local address; 0.0.0.0:9000 admits other machines, the default only this one.",
        ),
    ] = addresses.LISTEN,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Folder for the files, created if missing; default: a new folder.",
            show_default=False,
        ),
    ] = None,
    code: protection.Code = None,
    keys: protection.Keys = False,
    identity: protection.Identity = None,
    trusted: protection.Trusted = None,
    insecure: protection.Insecure = False,
    once: Annotated[
        bool, typer.Option("--once", help="Exit after one sender, with code 1 if it failed.")
    ] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Ask before the first file of each sender.")] = False,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most bytes to write in all, e.g. 10GB; further files are refused.",
            show_default=False,
        ),
    ] = None,
    dotfiles: Annotated[
        bool, typer.Option("--dotfiles", help="Accept files and folders whose name starts with a dot.")
    ] = False,
    executables: Annotated[
        bool, typer.Option("--executables", help="Make files executable that are so at the sender.")
    ] = False,
    max_connections: Annotated[
        int,
        typer.Option(
            min=1,
            max=4096,
            help="Most senders at a time; each may need 10 MiB of memory, all at least 512 MiB.",
        ),
    ] = 32,
    as_json: Annotated[
        bool, typer.Option("--json", help="Events as JSON objects, one per line; the last has the totals.")
    ] = False,
) -> None:
    """Receive files from longfat send until Ctrl-C; print the command that sends, with a one-time code.

    \b
    Examples:
      longfat recv --dir inbox
      longfat recv --dir inbox --listen 0.0.0.0:9000 --once
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.api.transfer_progress import Transfers
    from longfat.cli import open_files
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.system.progress import display

    address = addresses.listening(listen, "listen")
    chosen = protection.chosen(code, keys, identity, trusted, insecure)
    secured = chosen or _new_code()
    limits = limits_of(chosen is None, once, max_connections, max_bytes, dotfiles, executables)
    if ask and not sys.stdin.isatty():
        raise ValueError("--ask needs a terminal for its answers")
    interrupt_on_sigterm()
    open_files.raise_limit()
    stopped = False
    with prepared_folder(directory) as folder:
        received = Received(folder, Transfers(display()), secured, as_json=as_json)
        received.questions = Questions(received.transfers) if ask else None
        approvals = received.questions.approvals if received.questions else None
        try:
            _native.receive_files(
                address, str(folder), secured.document, json.dumps(limits), received.handle, approvals
            )
        except KeyboardInterrupt:
            stopped = True
        except OSError as error:
            received.write({"event": "end", "error": str(error), **received.to_json()})
            raise
        finally:
            cut = len(received.active)
            received.transfers.close()
    received.write({"event": "end", "error": None, **received.to_json()})
    if not as_json:
        typer.echo(received.summary())
    if stopped and (cut or once):
        raise typer.Exit(130)
    if once and received.failures:
        raise typer.Exit(1)


def _new_code() -> Protection:
    from longfat import _native

    return by_code(_native.new_code())


class Questions:
    """Asks a person about senders, one after another, while files arrive."""

    def __init__(self, transfers: Transfers) -> None:
        from longfat import _native

        self.approvals = _native.Approvals()
        self._transfers = transfers
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def ask(self, event: dict[str, Any]) -> None:
        """Asks about the sender of a request."""
        self._waiting.put(event)

    def _run(self) -> None:
        from longfat.api.transfer_progress import size

        while True:
            event = self._waiting.get()
            files = (
                f"{event['files']:,} files, e.g. {event['first']}" if event["files"] > 1 else event["first"]
            )
            amount = "unknown size" if event["bytes"] is None else size(event["bytes"])
            self._transfers.note(f"{event['peer']}: offers {files}, {amount}. Accept? [y/N]")
            accepted = sys.stdin.readline().strip().lower() in ("y", "yes")
            self.approvals.decide(event["request"], accepted)


@dataclass
class Received(ReceivedFiles):
    """The received files, reported as they arrive."""

    directory: Path
    transfers: Transfers
    secured: Protection
    questions: Questions | None = None
    """The questions about senders, if they are asked."""
    address: str = ""
    """The address for senders."""
    as_json: bool = False
    """Whether events are printed as JSON."""

    def handle(self, text: str) -> None:
        """Handles an event of `_native.receive_files`."""
        event = json.loads(text)
        is_news = self.record(event)
        if is_news and event["event"] not in _FREQUENT:
            code = {"code": self.secured.code} if event["event"] == "listening" else {}
            self.write({**event, **code})
        handler = getattr(self, f"_{event['event']}", None)
        if is_news and handler is not None:
            handler(event)

    def write(self, event: Mapping[str, Any]) -> None:
        """Prints an event on one line, with `--json`."""
        if self.as_json:
            standard_output.write(json.dumps(event, ensure_ascii=False) + "\n")

    def _listening(self, event: dict[str, Any]) -> None:
        address = event["address"]
        self.transfers.note(f"Listening on {address} for files into {self.directory} (Ctrl-C stops)")
        host, _, port = address.rpartition(":")
        if ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_unspecified:
            host = socket.gethostname()
        self.address = f"{host}:{port}"
        if self.secured.code:
            self.transfers.note(f"To send: longfat send FILE {self.address} --code {self.secured.code}")
        elif self.secured.insecure and addresses.is_open(address):
            self.transfers.note("Every host that reaches this address may send files, without encryption.")

    def _next_code(self, event: dict[str, Any]) -> None:
        self.transfers.note(f"For the next sender: longfat send FILE {self.address} --code {event['code']}")

    def _connected(self, event: dict[str, Any]) -> None:
        from longfat.api.transfer_progress import printable

        if event["name"] is not None:
            self.transfers.note(f"{event['peer']}: connected with the key of {printable(event['name'])}")

    def _refused(self, event: dict[str, Any]) -> None:
        others = f" ({event['others']} more refused before it)" if event["others"] else ""
        self.transfers.note(f"{event['peer']}: refused: {event['reason']}{others}")

    def _request(self, event: dict[str, Any]) -> None:
        if self.questions is not None:
            self.questions.ask(event)

    def _started(self, event: dict[str, Any]) -> None:
        from longfat.api.transfer_progress import size

        resumed = f", resuming at {size(event['resumed'])}" if event["resumed"] else ""
        what = "standard input" if event["size"] is None else size(event["size"])
        self.transfers.note(f"{event['peer']}: {event['name']}: receiving {what}{resumed}")
        self.transfers.start(key_of(event), event["name"], event["size"], event["resumed"])

    def _progress(self, event: dict[str, Any]) -> None:
        self.transfers.advance(key_of(event), event["done"])

    def _stored(self, event: dict[str, Any]) -> None:
        from longfat.api.transfer_progress import size
        from longfat.presentation.formatting import quantity

        self.transfers.end(key_of(event))
        name = event["offered"]
        renamed = f" as {event['name']}" if event["name"] != name else ""
        stored = f"stored{renamed} after {quantity(event['seconds'], 's')}"
        how = "already there" if event["already"] else stored
        self.transfers.note(f"{event['peer']}: {name}: {how}, {size(event['size'])}")

    def _failed(self, event: dict[str, Any]) -> None:
        self.transfers.end(key_of(event))
        self.transfers.note(f"{event['peer']}: {event['name']}: failed: {event['reason']}")

    def _disconnected(self, event: dict[str, Any]) -> None:
        if event["reason"] is not None:
            self.transfers.note(f"{event['peer']}: {event['reason']}")

    def to_json(self) -> dict[str, Any]:
        """Returns the totals for `--json`."""
        cut = [file["name"] for file in self.active.values()]
        return {"dir": str(self.directory), "files": self.files, "failures": self.failures, "cut": cut}

    def summary(self) -> str:
        """Returns the totals as one line."""
        from longfat.api.transfer_progress import size

        count = len(self.files)
        total = size(sum(file["size"] for file in self.files))
        parts = [f"{count} {'file' if count == 1 else 'files'} received, {total}"]
        if already := sum(file["already"] for file in self.files):
            parts.append(f"{already} of them already there")
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        if cut := [file["name"] for file in self.active.values()]:
            parts.append(f"incomplete: {', '.join(cut)} (send again to resume)")
        return "; ".join(parts)
