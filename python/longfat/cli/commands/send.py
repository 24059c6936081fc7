"""`longfat send`: sends files to `longfat recv`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat import _native
from longfat.api import addresses, transfers
from longfat.cli import INTERRUPTED, standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson
from longfat.cli.arguments.protection import CODE, code_of, is_chosen
from longfat.cli.arguments.sections import Given, SectionOptions

_EXAMPLE = "write longfat send FILE... ADDR, e.g. longfat send notes.txt 127.0.0.1:9000"
_AUTHENTICATE = "no code: longfat recv prints it for --code CODE; --keys and --insecure need none"

_PROTOCOL = SectionOptions("protocol", names={"kind": "protocol"}, whole=_native.file_protocol)


@_PROTOCOL.added_to
@command_of(
    transfers.send,
    without=["protocol"],
    files=Annotated[list[str] | None, typer.Argument(metavar="FILE")],
    address=typer.Argument(metavar="ADDR"),
    recursive=typer.Option("--recursive", "-r"),
    code=CODE,
    name=typer.Option(metavar="NAME"),
)
def send(
    *,
    call: partial[transfers.SentFiles],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Key of the protocol, also a nested one such as congestion.kind=cubic; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    given: Given,
) -> None:
    """Send files, encrypted, to longfat recv; resume interrupted transfers.

    \b
    Examples:
      longfat send notes.pdf 127.0.0.1:9000 --code ft0cxa-7kgrax-srk42p-z8jcn8
      longfat send big.bin 127.0.0.1:9000 --insecure --protocol go-back-n --window 64
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.signals import interrupt_on_sigterm

    files, address = call.keywords["files"] or [], call.keywords["address"]
    if not addresses.is_address(address) and (":" not in address or Path(address).exists()):
        raise ValueError(f'ADDR: "{address}" is not an address: {_EXAMPLE}')
    addresses.peer(address, "address")
    if not files:
        raise ValueError(f"no file to send: {_EXAMPLE}")
    protocol = _PROTOCOL.read(given, settings or ())
    code = code_of(call)
    if code is None and not is_chosen(call):
        code = _typed(files)
    interrupt_on_sigterm()
    try:
        report = call(code=code, protocol=protocol).report
    except (transfers.SendError, transfers.InterruptedSend) as error:
        if as_json:
            arrived = {"arrived_bytes": error.arrived_bytes, "bytes": error.total_bytes}
            standard_output.document({"error": str(error), **arrived})
        if isinstance(error, OSError):
            raise
        typer.echo(f"longfat: {error}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _show(report, as_json)


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


def _typed(files: list[str]) -> str:
    """Returns the code that the user types."""
    if transfers.STANDARD_INPUT in files or not sys.stdin.isatty():
        raise ValueError(_AUTHENTICATE)
    typer.echo("Code: ", nl=False, err=True)
    return sys.stdin.readline().strip()


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
