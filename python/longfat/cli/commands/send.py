"""`longfat send`: sends files to `longfat recv`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat import _native
from longfat.api import addresses
from longfat.api.protection import Protection
from longfat.cli import standard_output
from longfat.cli.arguments import protection
from longfat.cli.arguments.options import AsJson
from longfat.cli.arguments.sections import Given, SectionOptions

_KEY = "all"
_EXAMPLE = "write longfat send FILE... ADDR, e.g. longfat send notes.txt 127.0.0.1:9000"
_AUTHENTICATE = "no code: longfat recv prints it for --code CODE; --keys and --insecure need none"

_PROTOCOL = SectionOptions("protocol", names={"kind": "protocol"}, whole=_native.file_protocol)


@_PROTOCOL.added_to
def send(
    *,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Files to send.", show_default=False)
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
    from longfat.api.quantities import duration
    from longfat.cli.display.transfers import printable
    from longfat.cli.signals import interrupt_on_sigterm

    if not addresses.is_address(address) and (":" not in address or Path(address).exists()):
        raise ValueError(f'ADDR: "{address}" is not an address: {_EXAMPLE}')
    addresses.peer(address, "address")
    if not files:
        raise ValueError(f"no file to send: {_EXAMPLE}")
    protocol = _PROTOCOL.read(given, settings or ())
    secured = protection.chosen(code, keys, identity, trusted, insecure) or _typed()
    patience = duration("wait", wait, 0, 86_400)
    interrupt_on_sigterm()
    report = _send(files, address, secured.document, protocol, recursive, patience)
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


def _typed() -> Protection:
    """Returns the protection by a code that the user types."""
    if not sys.stdin.isatty():
        raise ValueError(_AUTHENTICATE)
    typer.echo("Code: ", nl=False, err=True)
    typed = protection.chosen(sys.stdin.readline().strip(), False, None, None, False)
    if typed is None:
        raise ValueError(_AUTHENTICATE)
    return typed


def _send(
    files: list[str], address: str, secured: str, protocol: dict[str, Any], recursive: bool, wait: float
) -> dict[str, Any]:
    """Sends the files and returns the report. Errors include the bytes that arrived before."""
    from longfat.cli.display.transfers import Transfers, printable, size
    from longfat.progress import display

    transfers = Transfers(display())
    state = {"done": 0, "total": 0, "waiting": False}

    def show(text: str) -> None:
        now = json.loads(text)
        label = printable(now["name"])
        if now["files"] > 1:
            label += f" ({now['file'] + 1} of {now['files']})"
        if now["waiting"] and not state["waiting"]:
            transfers.note("The receiver is gone: waiting for its return (Ctrl-C stops)")
        state["waiting"] = now["waiting"]
        if not state["total"]:
            transfers.start(_KEY, label, now["total"], now["done"])
        transfers.advance(_KEY, now["done"], label)
        state.update(done=now["done"], total=now["total"])

    def arrived() -> str:
        if not state["done"]:
            return ""
        return f"; {size(state['done'])} of {size(state['total'])} arrived; send again to resume"

    try:
        report: dict[str, Any] = json.loads(
            _native.send_files(files, address, secured, json.dumps(protocol), show, recursive, wait)
        )
    except KeyboardInterrupt:
        transfers.close()
        typer.echo(f"longfat: stopped{arrived()}", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        raise OSError(f"{error}{arrived()}") from None
    finally:
        transfers.close()
    return report


def _line(file: dict[str, Any]) -> str:
    from longfat.cli.display.transfers import printable, size

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
    from longfat.cli.display.transfers import size
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
