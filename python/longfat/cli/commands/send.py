"""`longfat send`: sends files to `longfat recv`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from longfat import _native
from longfat.api import addresses
from longfat.api.protection import Protection
from longfat.cli import standard_output
from longfat.cli.arguments import protection
from longfat.cli.arguments.options import AsJson
from longfat.cli.arguments.sections import Given, SectionOptions

if TYPE_CHECKING:
    from longfat.api.transfer_progress import Sending

_INPUT = "-"
_INPUT_NAME = "stdin"
_EXAMPLE = "write longfat send FILE... ADDR, e.g. longfat send notes.txt 127.0.0.1:9000"
_AUTHENTICATE = "no code: longfat recv prints it for --code CODE; --keys and --insecure need none"

_PROTOCOL = SectionOptions("protocol", names={"kind": "protocol"}, whole=_native.file_protocol)


@_PROTOCOL.added_to
def send(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files to send; - is standard input, which cannot be resumed.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDR", help="Address of the receiver, e.g. 192.0.2.7:9000.", show_default=False
        ),
    ],
    given: Given,
    recursive: Annotated[
        bool, typer.Option("-r", "--recursive", help="Send folders with all files in them; skip links.")
    ] = False,
    code: protection.Code = None,
    keys: protection.Keys = False,
    identity: protection.Identity = None,
    trusted: protection.Trusted = None,
    insecure: protection.Insecure = False,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help='Name of standard input at the receiver.  [default: "stdin"]',
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Longest wait for a receiver that disappears; 0s fails at once."
        ),
    ] = "60s",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Key of the protocol, also a nested one such as congestion.kind=cubic; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send files, encrypted, to longfat recv; resume interrupted transfers.

    \b
    Examples:
      longfat send notes.pdf 127.0.0.1:9000 --code ft0cxa-7kgrax-srk42p-z8jcn8
      longfat send big.bin 127.0.0.1:9000 --insecure --protocol go-back-n --window 64
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.transfer_progress import Sending
    from longfat.api.transfers import sent
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.system.progress import display

    if not addresses.is_address(address) and (":" not in address or Path(address).exists()):
        raise ValueError(f'ADDR: "{address}" is not an address: {_EXAMPLE}')
    addresses.peer(address, "address")
    if not files:
        raise ValueError(f"no file to send: {_EXAMPLE}")
    received_name = _name_of_input(files, name)
    protocol = _PROTOCOL.read(given, settings or ())
    secured = protection.chosen(code, keys, identity, trusted, insecure) or _typed(files)
    interrupt_on_sigterm()
    sending = Sending(display())
    try:
        report = sent(
            sending,
            [file for file in files if received_name is None],
            address,
            secured,
            protocol,
            recursive=recursive,
            wait=wait,
            name=received_name,
        ).report
    except (KeyboardInterrupt, OSError) as error:
        sending.close()
        _fail(error, sending, as_json)
    finally:
        sending.close()
    _show(report, as_json)


def _fail(error: BaseException, sending: Sending, as_json: bool) -> NoReturn:
    """Reports a failure with the bytes that arrived before."""
    stopped = isinstance(error, KeyboardInterrupt)
    line = f"{'stopped' if stopped else error}{sending.arrived}"
    if as_json:
        failure = {"error": line, "arrived_bytes": sending.done, "bytes": sending.total}
        standard_output.document(failure)
    if not stopped:
        raise OSError(line) from None
    typer.echo(f"longfat: {line}", err=True)
    raise typer.Exit(130) from None


def _show(report: dict[str, Any], as_json: bool) -> None:
    """Prints the results of all files, and exits with 1 if one failed."""
    from longfat.api.transfer_progress import printable

    if as_json:
        standard_output.document(report)
    failed = [file for file in report["files"] if file["outcome"] == "failed"]
    for file in report["files"]:
        if file["outcome"] != "failed" and not as_json:
            typer.echo(_line(file))
    for file in failed:
        typer.echo(f"longfat: {printable(file['path'])}: failed: {file['detail']}", err=True)
    if report["reconnections"]:
        typer.echo(f"longfat: connections lost and resumed: {report['reconnections']}", err=True)
    if report["skipped"]:
        typer.echo(f"longfat: links and special files skipped: {report['skipped']}", err=True)
    if not as_json:
        typer.echo(summary(report))
    if failed:
        raise typer.Exit(1)


def _name_of_input(files: list[str], name: str | None) -> str | None:
    """Returns the name of standard input at the receiver, if it is sent."""
    if _INPUT not in files:
        if name is not None:
            raise ValueError(f"--name is the name of standard input: it needs {_INPUT} as FILE")
        return None
    if len(files) > 1:
        raise ValueError(f"FILE: {_INPUT} is sent alone: standard input may never end")
    if name == "":
        raise ValueError("--name: the name is empty")
    return name or _INPUT_NAME


def _typed(files: list[str]) -> Protection:
    """Returns the protection by a code that the user types."""
    if _INPUT in files or not sys.stdin.isatty():
        raise ValueError(_AUTHENTICATE)
    typer.echo("Code: ", nl=False, err=True)
    typed = protection.chosen(sys.stdin.readline().strip(), False, None, None, False)
    if typed is None:
        raise ValueError(_AUTHENTICATE)
    return typed


def _line(file: dict[str, Any]) -> str:
    from longfat.api.transfer_progress import printable, size

    path = printable(file["path"])
    if file["outcome"] == "already":
        return f"{path}: already there as {file['detail']}"
    resumed = f", {size(file['resumed'])} of it from an earlier transfer" if file["resumed"] else ""
    return f"{path}: stored as {file['detail']}, {size(file['size'])}{resumed}"


def summary(report: dict[str, Any]) -> str:
    """Returns the statistics of all transfers as one line.

    >>> summary({"bytes": 2_000_000, "seconds": 1.6, "goodput_bps": 1e7, "packets_sent": 1530,
    ...          "retransmissions": 30})
    '2.00 MB in 1.60 s: 10.0 Mbit/s; 1,530 packets, 30 retransmissions (2 %)'
    """
    from longfat.api.transfer_progress import size
    from longfat.presentation.formatting import quantity

    took = quantity(report["seconds"], "s")
    sent, again = report["packets_sent"], report["retransmissions"]
    if not report["bytes"]:
        return f"nothing sent; {took}"
    share = f" ({again / max(1, sent - again) * 100:.2g} %)" if again else ""
    return (
        f"{size(report['bytes'])} in {took}: {quantity(report['goodput_bps'], 'bit/s')}; "
        f"{sent:,} packets, {again:,} {'retransmission' if again == 1 else 'retransmissions'}{share}"
    )
