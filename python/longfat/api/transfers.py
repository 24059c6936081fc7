"""`send` and `receive`: files between machines, encrypted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from longfat import _native
from longfat.api import addresses, protection
from longfat.api.quantities import duration
from longfat.api.received import ReceivedFiles, limits_of, prepared_folder
from longfat.api.servers import Server
from longfat.api.transfer_progress import Sending
from longfat.presentation.displayed import Displayed, TextTable
from longfat.study.tables import table_of
from longfat.system.parameters import ParameterError
from longfat.system.progress import watching

if TYPE_CHECKING:
    import polars

    from longfat.study.tables import Protocol

_LONGEST_WAIT_S = 86_400


@dataclass(frozen=True, repr=False)
class SentFiles(Displayed):
    """The result of `send`: `files` with their outcomes, and totals in `report` (B, s, bit/s, packets)."""

    report: dict[str, Any]

    @property
    def files(self) -> list[dict[str, Any]]:
        """Each file: `path`, `size`, `resumed` (B from an earlier transfer), `outcome`, `detail`.

        `outcome` is "stored", "already" (the receiver had it) or "failed".
        """
        files: list[dict[str, Any]] = self.report["files"]
        return files

    @property
    def is_complete(self) -> bool:
        """Whether no file failed."""
        return all(file["outcome"] != "failed" for file in self.files)

    @property
    def title(self) -> str:
        """Number of files, bytes and goodput."""
        from longfat.presentation.formatting import quantity

        size, rate = self.report["bytes"], self.report["goodput_bps"]
        return f"{len(self.files)} files sent, {quantity(size, 'B')}, {quantity(rate or 0.0, 'bit/s')}"

    def table(self) -> TextTable:
        """Returns a row for each file."""
        rows = [[str(f["path"]), str(f["size"]), str(f["outcome"]), str(f["detail"])] for f in self.files]
        return TextTable(("file", "bytes", "outcome", "detail"), rows, right=(1,))

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each file."""
        import polars as pl

        return pl.DataFrame(self.files, infer_schema_length=None)


def send(
    files: str | Path | Sequence[str | Path],
    address: str,
    *,
    code: str | None = None,
    keys: bool = False,
    identity: str | Path | None = None,
    trusted: str | Path | None = None,
    insecure: bool = False,
    protocol: Protocol | Mapping[str, Any] | None = None,
    recursive: bool = False,
    wait: str = "60s",
    progress: bool | None = None,
) -> SentFiles:
    """Sends files to a receiver; resumes interrupted transfers.

    Args:
        files: One file or several; folders with `recursive`.
        address: Address of the receiver ("192.0.2.7:9000").
        code: Code that the receiver shows.
        keys: Authenticates by keys instead of a code.
        identity: File of the secret key; implies `keys`.
        trusted: File of trusted public keys; implies `keys`.
        insecure: Neither encrypts nor authenticates, for laboratory networks.
        protocol: Keys of an ARQ protocol, e.g. `GoBackN(window=64)`; by default a tuned selective repeat.
        recursive: Sends folders with all files in them.
        wait: How long to wait for a receiver that disappears.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Outcomes of the files, and totals.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the receiver cannot be reached or refuses.
    """
    listed = [files] if isinstance(files, str | Path) else list(files)
    if not listed:
        raise ParameterError("files", "no file to send")
    addresses.peer(address, "address")
    secured = protection.chosen(code, keys, _path(identity), _path(trusted), insecure)
    if secured is None:
        raise ParameterError("", "set {code}, {keys} or {insecure}")
    settings = {} if protocol is None else table_of(protocol, "protocol")
    sending = Sending(watching(progress))
    try:
        return sent(
            sending,
            [str(file) for file in listed],
            address,
            secured,
            settings,
            recursive=recursive,
            wait=wait,
        )
    finally:
        sending.close()


def sent(
    sending: Sending,
    files: Sequence[str],
    address: str,
    secured: protection.Protection,
    settings: Mapping[str, Any],
    *,
    recursive: bool,
    wait: str,
    name: str | None = None,
) -> SentFiles:
    """Sends files to an address, or standard input under a name; shows the progress by `sending`.

    Raises ValueError, OSError and KeyboardInterrupt; `sending` then has what arrived.
    """
    return SentFiles(
        json.loads(
            _native.send_files(
                files,
                address,
                secured.document,
                json.dumps(settings),
                sending.show,
                recursive,
                duration("wait", wait, 0, _LONGEST_WAIT_S),
                name,
            )
        )
    )


class Receiver:
    """A running receiver of files, in a thread. `stop()` or the end of a `with` block ends it.

    `address` is where it listens, `code` what senders need, `files` and `failures` what arrived so far.
    """

    def __init__(
        self, directory: Path, listen: str, secured: protection.Protection, limits: Mapping[str, Any]
    ) -> None:
        self.directory = directory
        self._received = ReceivedFiles(code=secured.code)
        self._server = Server(
            lambda handle: _native.receive_files(
                listen, str(directory), secured.document, json.dumps(dict(limits)), handle
            ),
            self._received.record,
        )

    @property
    def address(self) -> str:
        """The address for senders."""
        return self._server.address

    @property
    def code(self) -> str | None:
        """The code for the next sender; None without codes."""
        return self._received.code

    @property
    def files(self) -> list[dict[str, Any]]:
        """Stored files: `peer`, `name`, `size` (B), `already` (was there before) and `seconds`."""
        return list(self._received.files)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Failed files: `peer`, `name` (None for a connection) and `reason`."""
        return list(self._received.failures)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the end (with `once`, of the sender). Raises TimeoutError after `timeout` s."""
        self._server.wait(timeout)

    def stop(self) -> None:
        """Ends the receiver."""
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        code = f", code={self.code!r}" if self.code else ""
        state = "listening at" if self._server.is_running else "stopped, was at"
        count = f"{len(self.files)} files in {str(self.directory)!r}"
        return f"Receiver({state} {self.address}{code}, {count})"


def receive(
    directory: str | Path | None = None,
    *,
    listen: str = addresses.LISTEN,
    code: str | None = None,
    keys: bool = False,
    identity: str | Path | None = None,
    trusted: str | Path | None = None,
    insecure: bool = False,
    once: bool = False,
    max_bytes: str | None = None,
    max_connections: int = 32,
    dotfiles: bool = False,
    executables: bool = False,
) -> Receiver:
    """Starts to receive files from `send` and `longfat send`, in the background.

    Args:
        directory: Folder for the files, created if missing; by default a new folder "received".
        listen: Local address; port 0 is any free one. The default admits only this machine.
        code: Code that all senders need; by default a new one for each sender.
        keys: Authenticates by keys instead of a code.
        identity: File of the secret key; implies `keys`.
        trusted: File of trusted public keys; implies `keys`.
        insecure: Neither encrypts nor authenticates, for laboratory networks.
        once: Ends after one sender.
        max_bytes: Most bytes to write in all ("10GB"); further files are refused.
        max_connections: Most senders at a time.
        dotfiles: Accepts files and folders whose name starts with a dot.
        executables: Makes files executable that are so at the sender.

    Returns:
        The running receiver.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the address is in use.
    """
    checked = addresses.listening(listen, "listen")
    secured = protection.chosen(code, keys, _path(identity), _path(trusted), insecure)
    limits = limits_of(secured is None, once, max_connections, max_bytes, dotfiles, executables)
    with prepared_folder(_path(directory)) as folder:
        return Receiver(folder, checked, secured or protection.by_code(_native.new_code()), limits)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
