"""`send` and `receive`: files between machines, encrypted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.api import addresses, protection
from longfat.api.quantities import Duration, Size, duration
from longfat.api.received import limits_of
from longfat.api.receiving import Receiving
from longfat.api.servers import Server, Stoppable
from longfat.api.transfer_progress import Sending, Transfers
from longfat.presentation.displayed import Displayed, TextTable
from longfat.study.tables import table_of
from longfat.system.parameters import ParameterError
from longfat.system.progress import watching

if TYPE_CHECKING:
    import polars

    from longfat.study.tables import Protocol

STANDARD_INPUT = "-"
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


class _UnfinishedSendError(BaseException):
    """A transfer that stopped early: the text has what arrived."""

    def __init__(self, text: str, arrived_bytes: int, total_bytes: int | None) -> None:
        super().__init__(text)
        self.arrived_bytes = arrived_bytes
        self.total_bytes = total_bytes
        """Bytes of all files; None if unknown."""


class SendError(_UnfinishedSendError, OSError):
    """A failed transfer. The text has the reason and what arrived: `arrived_bytes` of `total_bytes`."""


class InterruptedSend(_UnfinishedSendError, KeyboardInterrupt):  # noqa: N818 - Ctrl-C is no error
    """A transfer that Ctrl-C stopped. The text has what arrived: `arrived_bytes` of `total_bytes`."""


def send(
    files: str | File | Sequence[str | File],
    address: str,
    *,
    recursive: bool = False,
    code: str | None = None,
    keys: bool = False,
    identity: File | str | None = None,
    trusted: File | str | None = None,
    insecure: bool = False,
    protocol: Protocol | Mapping[str, Any] | None = None,
    name: str | None = None,
    wait: Duration = "60s",
    progress: bool | None = None,
) -> SentFiles:
    """Sends files to a receiver; resumes interrupted transfers.

    Args:
        files: Files to send; - is standard input, which cannot be resumed.
        address: Address of the receiver, e.g. "192.0.2.7:9000".
        recursive: Folders with all files in them; links are skipped.
        code: Code that the receiver prints.
        keys: Authentication by keys instead of a code (see `longfat key`).
        identity: Secret key for `keys`; by default ~/.config/longfat/identity.
        trusted: Trusted public keys for `keys`; by default ~/.config/longfat/trusted.
        insecure: Neither encryption nor authentication, for laboratory networks.
        protocol: Keys of an ARQ protocol, e.g. `GoBackN(window=64)`; by default a tuned selective repeat.
        name: Name of standard input at the receiver; by default stdin.
        wait: Longest wait for a receiver that disappears; 0s fails at once.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Outcomes of the files, and totals.

    Raises:
        ValueError: with the parameter and what is allowed.
        SendError: (an OSError) if the receiver cannot be reached, disappears or refuses.
        InterruptedSend: (a KeyboardInterrupt) on Ctrl-C.
    """
    listed = [str(file) for file in ([files] if isinstance(files, str | File) else files)]
    if not listed:
        raise ParameterError("files", "no file to send")
    addresses.peer(address, "address")
    input_name = _name_of_input(listed, name)
    secured = protection.chosen(code, keys, _path(identity), _path(trusted), insecure)
    if secured is None:
        raise ParameterError("", "set {code}, {keys} or {insecure}")
    settings = {} if protocol is None else table_of(protocol, "protocol")
    longest = duration("wait", wait, 0, _LONGEST_WAIT_S)
    sending = Sending(watching(progress, log=True))
    try:
        report = _native.send_files(
            [] if input_name is not None else listed,
            address,
            secured.document,
            json.dumps(settings),
            sending.show,
            recursive,
            longest,
            input_name,
        )
    except OSError as error:
        raise SendError(f"{error}{sending.arrived}", sending.done, sending.total) from None
    except KeyboardInterrupt:
        raise InterruptedSend(f"stopped{sending.arrived}", sending.done, sending.total) from None
    finally:
        sending.close()
    return SentFiles(json.loads(report))


def _name_of_input(files: Sequence[str], name: str | None) -> str | None:
    """Returns the name of standard input at the receiver, if it is sent. Raises ParameterError."""
    if STANDARD_INPUT not in files:
        if name is not None:
            raise ParameterError(
                "", f"{{name}} is the name of standard input: it needs {STANDARD_INPUT} as {{files}}"
            )
        return None
    if len(files) > 1:
        raise ParameterError("files", f"{STANDARD_INPUT} is sent alone: standard input may never end")
    if name == "":
        raise ParameterError("name", "the name is empty")
    return name or "stdin"


class Receiver(Stoppable):
    """A running receiver of files, in a thread. `stop()` or the end of a `with` block stops it.

    `address` is where it listens, `code` what senders need, `files` and `failures` what arrived so far.
    """

    def __init__(
        self,
        directory: File | None,
        listen: str,
        secured: protection.Protection,
        limits: Mapping[str, Any],
        received: Receiving,
        *,
        wait: bool,
    ) -> None:
        self.received = received
        """The files, and running transfers."""

        def serve(handle: Callable[[str], bool]) -> str:
            with received.reported(directory) as folder:
                approvals = received.approvals
                return _native.receive_files(
                    listen, str(folder), secured.document, json.dumps(dict(limits)), handle, approvals
                )

        self._server = Server(serve, received.handle, wait=wait)

    @property
    def directory(self) -> File:
        """The folder of the files."""
        return self.received.directory

    @property
    def address(self) -> str:
        """The address for senders."""
        return self._server.address

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C stopped it, with `wait`."""
        return self._server.is_interrupted

    @property
    def code(self) -> str | None:
        """The code for the next sender; None without codes."""
        return self.received.code

    @property
    def files(self) -> list[dict[str, Any]]:
        """Stored files: `peer`, `name`, `size` (B), `already` (was there before) and `seconds`."""
        return list(self.received.files)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Failed files: `peer`, `name` (None for a connection) and `reason`."""
        return list(self.received.failures)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the end (with `once`, of the sender). Raises TimeoutError after `timeout` s."""
        self._server.wait(timeout)

    def stop(self) -> None:
        """Stops the receiver."""
        self._server.stop()

    def __repr__(self) -> str:
        code = f", code={self.code!r}" if self.code else ""
        state = "listening at" if self._server.is_running else "stopped, was at"
        count = f"{len(self.files)} files in {str(self.directory)!r}"
        return f"Receiver({state} {self.address}{code}, {count})"


def receive(
    directory: File | str | None = None,
    *,
    listen: str = addresses.LISTEN,
    code: str | None = None,
    keys: bool = False,
    identity: File | str | None = None,
    trusted: File | str | None = None,
    insecure: bool = False,
    once: bool = False,
    ask: bool = False,
    max_bytes: Size | None = None,
    dotfiles: bool = False,
    executables: bool = False,
    max_connections: int = 32,
    progress: bool = False,
    on_event: Callable[[dict[str, Any]], object] | None = None,
    wait: bool = False,
) -> Receiver:
    """Receives files from `send` and `longfat send`, in the background.

    Args:
        directory: Folder for the files, created if missing; by default a new folder.
        listen: Local address; 0.0.0.0:9000 admits other machines, the default only this one.
        code: Code that all senders need; by default a new one for each sender.
        keys: Authentication by keys instead of a code (see `longfat key`).
        identity: Secret key for `keys`; by default ~/.config/longfat/identity.
        trusted: Trusted public keys for `keys`; by default ~/.config/longfat/trusted.
        insecure: Neither encryption nor authentication, for laboratory networks.
        once: End after one sender.
        ask: A question at the terminal before the first file of each sender.
        max_bytes: Most bytes to write in all, e.g. 10GB; further files are refused.
        dotfiles: Files and folders whose name starts with a dot as well.
        executables: Executable files that are executable at the sender.
        max_connections: Most senders at a time; each may need 10 MiB of memory, all at least 512 MiB.
        progress: Whether to show the address, the files and their progress.
        on_event: Function that receives each event, as `longfat recv --json` prints it; the last is "end".
        wait: Whether to receive until Ctrl-C or, with `once`, the end of the sender, not in the background.

    Returns:
        The running receiver; with `wait`, the stopped one.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the address is in use.
    """
    checked = addresses.listening(listen, "listen")
    chosen = protection.chosen(code, keys, _path(identity), _path(trusted), insecure)
    secured = chosen or protection.by_code(_native.new_code())
    limits = limits_of(chosen is None, once, max_connections, max_bytes, dotfiles, executables)
    if ask and not sys.stdin.isatty():
        raise ParameterError("", "{ask} needs a terminal for its answers")
    received = Receiving(Transfers(watching(progress, log=True)), secured, on_event)
    if ask:
        received.ask()
    return Receiver(_path(directory), checked, secured, limits, received, wait=wait)


def _path(given: File | str | None) -> File | None:
    return None if given is None else File(given)
