"""`longfat send`: files to a `longfat recv`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat import _native
from longfat.cli.arguments import addresses
from longfat.cli.arguments.sections import Given, SectionOptions

_EVERYTHING = "all"
_EXAMPLE = "write longfat send FILE... ADDR, e.g. longfat send notes.txt 127.0.0.1:9000"

_PROTOCOL = SectionOptions("protocol", names={"kind": "protocol"}, whole=_native.file_protocol)


@_PROTOCOL.added_to
def send(
    *,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="The files.", show_default=False)
    ] = None,
    address: Annotated[
        str,
        typer.Argument(metavar="ADDR", help="The receiver, e.g. 192.0.2.7:9000.", show_default=False),
    ],
    given: Given,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a key of the protocol, also a nested one, e.g. congestion.kind=cubic; may be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on standard output.")
    ] = False,
) -> None:
    """Send files to a longfat recv; what a broken transfer has brought there is not sent again.

    The content is verified by its hash, and a file appears there only when it is whole.
    Neither is encrypted, nor does the receiver ask who sends.

    \b
    Examples:
      longfat send notes.pdf 127.0.0.1:9000
      longfat send *.iso files.example:9000
      longfat send big.bin 127.0.0.1:9000 --protocol go-back-n --window 64 --rto 200ms
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.display.transfers import shown
    from longfat.cli.signals import end_like_ctrl_c

    if not addresses.looks_like_one(address) and (":" not in address or Path(address).exists()):
        raise ValueError(f'the last word must be the address, HOST:PORT, but it is "{address}": {_EXAMPLE}')
    addresses.peer(address, "ADDR")
    if not files:
        raise ValueError(f"no file to send: {_EXAMPLE}")
    protocol = _PROTOCOL.read(given, settings or ())
    end_like_ctrl_c()
    report = _sent(files, address, protocol)
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
    failed = [file for file in report["files"] if file["outcome"] == "failed"]
    for file in report["files"]:
        if file["outcome"] != "failed" and not as_json:
            typer.echo(_line(file))
    for file in failed:
        typer.echo(f"longfat: {shown(file['path'])}: failed: {file['detail']}", err=True)
    if not as_json:
        typer.echo(summary(report))
    if failed:
        raise typer.Exit(1)


def _sent(files: list[str], address: str, protocol: dict[str, Any]) -> dict[str, Any]:
    """Sends with progress; gives the report. What had arrived when it broke is told with the error."""
    from longfat.cli.display.transfers import shown, size, transfers

    display = transfers()
    state = {"done": 0, "total": 0}

    def show(text: str) -> None:
        now = json.loads(text)
        label = shown(now["name"])
        if now["files"] > 1:
            label += f" ({now['file'] + 1} of {now['files']})"
        if not state["total"]:
            display.begin(_EVERYTHING, label, now["total"], now["done"])
        display.advance(_EVERYTHING, now["done"], label)
        state.update(done=now["done"], total=now["total"])

    def arrived() -> str:
        if not state["done"]:
            return ""
        return (
            f"; {size(state['done'])} of {size(state['total'])} had arrived, send again to go on from there"
        )

    try:
        report: dict[str, Any] = json.loads(_native.send_files(files, address, json.dumps(protocol), show))
    except KeyboardInterrupt:
        display.close()
        typer.echo(f"longfat: stopped{arrived()}", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        raise OSError(f"{error}{arrived()}") from None
    finally:
        display.close()
    return report


def _line(file: dict[str, Any]) -> str:
    from longfat.cli.display.transfers import shown, size

    path = shown(file["path"])
    if file["outcome"] == "already":
        return f"{path}: already there as {file['detail']}"
    resumed = f", {size(file['resumed'])} of it from an earlier transfer" if file["resumed"] else ""
    return f"{path}: stored as {file['detail']}, {size(file['size'])}{resumed}"


def summary(report: dict[str, Any]) -> str:
    """What the sending came to, in a line.

    >>> summary({"bytes": 2_000_000, "seconds": 1.6, "goodput_bps": 1e7, "packets_sent": 1530,
    ...          "retransmissions": 30})
    '2.00 MB in 1.60 s: 10.0 Mbit/s; 1,530 packets, 30 sent again: 2.0 % more than needed'
    """
    from longfat.cli.display.transfers import size
    from longfat.presentation.formatting import quantity

    took = quantity(report["seconds"], "s")
    sent, again = report["packets_sent"], report["retransmissions"]
    if not report["bytes"]:
        return f"nothing had to be sent; {took}"
    beyond = f": {again / max(1, sent - again) * 100:.1f} % more than needed" if again else ""
    return (
        f"{size(report['bytes'])} in {took}: {quantity(report['goodput_bps'], 'bit/s')}; "
        f"{sent:,} packets, {again:,} sent again{beyond}"
    )
