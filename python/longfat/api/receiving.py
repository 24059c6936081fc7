"""The display and the events of a receiver of files."""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from longfat import _native
from longfat.api import addresses
from longfat.api.protection import Protection
from longfat.api.received import ReceivedFiles, key_of, prepared_folder
from longfat.api.transfer_progress import Transfers, printable, size

_FREQUENT = ("tick", "progress")
"""Events that only the display receives."""


class Questions:
    """Asks a person about senders, one after another, while files arrive."""

    def __init__(self, transfers: Transfers) -> None:
        self.approvals = _native.Approvals()
        self._transfers = transfers
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def ask(self, event: dict[str, Any]) -> None:
        """Asks about the sender of a request."""
        self._waiting.put(event)

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            files = (
                f"{event['files']:,} files, e.g. {event['first']}" if event["files"] > 1 else event["first"]
            )
            amount = "unknown size" if event["bytes"] is None else size(event["bytes"])
            self._transfers.note(f"{event['peer']}: offers {files}, {amount}. Accept? [y/N]")
            accepted = sys.stdin.readline().strip().lower() in ("y", "yes")
            self.approvals.decide(event["request"], accepted)


class Receiving(ReceivedFiles):
    """The received files, reported as they arrive.

    Args:
        transfers: The display.
        secured: How senders authenticate.
        on_event: Receives each event, except the frequent ones.
    """

    def __init__(
        self,
        transfers: Transfers,
        secured: Protection,
        on_event: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__(code=secured.code)
        self.directory = Path()
        """The folder of the files."""
        self._transfers = transfers
        self._secured = secured
        self._on_event = on_event or bool
        self._questions: Questions | None = None
        self._address = ""

    def ask(self) -> None:
        """Asks about each sender."""
        self._questions = Questions(self._transfers)

    @property
    def approvals(self) -> _native.Approvals | None:
        """The decisions about senders, if they are asked."""
        return self._questions.approvals if self._questions else None

    @contextlib.contextmanager
    def reported(self, directory: Path | None) -> Iterator[Path]:
        """Yields the folder of the files, and reports the end and its error."""
        with prepared_folder(directory) as self.directory:
            failure = None
            try:
                yield self.directory
            except OSError as error:
                failure = str(error)
                raise
            finally:
                self._transfers.close()
                self._on_event({"event": "end", "error": failure, **self.to_json()})

    def handle(self, event: dict[str, Any]) -> None:
        """Handles an event of `_native.receive_files`."""
        is_news = self.record(event)
        if is_news and event["event"] not in _FREQUENT:
            code = {"code": self._secured.code} if event["event"] == "listening" else {}
            self._on_event({**event, **code})
        handler = getattr(self, f"_{event['event']}", None)
        if is_news and handler is not None:
            handler(event)

    def _listening(self, event: dict[str, Any]) -> None:
        address = event["address"]
        self._transfers.note(f"Listening on {address} for files into {self.directory} (Ctrl-C stops)")
        host, _, port = address.rpartition(":")
        if ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_unspecified:
            host = socket.gethostname()
        self._address = f"{host}:{port}"
        if self._secured.code:
            self._transfers.note(f"To send: longfat send FILE {self._address} --code {self._secured.code}")
        elif self._secured.insecure and addresses.is_open(address):
            self._transfers.note("Every host that reaches this address may send files, without encryption.")

    def _next_code(self, event: dict[str, Any]) -> None:
        self._transfers.note(f"For the next sender: longfat send FILE {self._address} --code {event['code']}")

    def _connected(self, event: dict[str, Any]) -> None:
        if event["name"] is not None:
            self._transfers.note(f"{event['peer']}: connected with the key of {printable(event['name'])}")

    def _refused(self, event: dict[str, Any]) -> None:
        others = f" ({event['others']} more refused before it)" if event["others"] else ""
        self._transfers.note(f"{event['peer']}: refused: {event['reason']}{others}")

    def _request(self, event: dict[str, Any]) -> None:
        if self._questions is not None:
            self._questions.ask(event)

    def _started(self, event: dict[str, Any]) -> None:
        resumed = f", resuming at {size(event['resumed'])}" if event["resumed"] else ""
        what = "standard input" if event["size"] is None else size(event["size"])
        self._transfers.note(f"{event['peer']}: {event['name']}: receiving {what}{resumed}")
        self._transfers.start(key_of(event), event["name"], event["size"], event["resumed"])

    def _progress(self, event: dict[str, Any]) -> None:
        self._transfers.advance(key_of(event), event["done"])

    def _stored(self, event: dict[str, Any]) -> None:
        from longfat.presentation.formatting import quantity

        self._transfers.end(key_of(event))
        name = event["offered"]
        renamed = f" as {event['name']}" if event["name"] != name else ""
        stored = f"stored{renamed} after {quantity(event['seconds'], 's')}"
        how = "already there" if event["already"] else stored
        self._transfers.note(f"{event['peer']}: {name}: {how}, {size(event['size'])}")

    def _failed(self, event: dict[str, Any]) -> None:
        self._transfers.end(key_of(event))
        self._transfers.note(f"{event['peer']}: {event['name']}: failed: {event['reason']}")

    def _disconnected(self, event: dict[str, Any]) -> None:
        if event["reason"] is not None:
            self._transfers.note(f"{event['peer']}: {event['reason']}")

    def to_json(self) -> dict[str, Any]:
        """Returns the totals for `--json`."""
        cut = [file["name"] for file in self.active.values()]
        return {"dir": str(self.directory), "files": self.files, "failures": self.failures, "cut": cut}

    def summary(self) -> str:
        """Returns the totals as one line."""
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
