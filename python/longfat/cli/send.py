"""`longfat send`: files to a `longfat recv`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat import _native
from longfat.cli import addresses
from longfat.cli.settings import Given, SectionOptions

_EVERYTHING = "all"

_PROTOCOL = SectionOptions(
    "protocol", names={"kind": "protocol"}, defaults=json.loads(_native.file_protocol("{}"))
)


@_PROTOCOL.added_to
def send(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... ADDR",
            help="The files, and last the receiver as HOST:PORT, e.g. 192.0.2.7:9000.",
            show_default=False,
        ),
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
    from longfat.cli.stopping import end_like_ctrl_c

    files, address = split(words)
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
        typer.echo(f"longfat: {file['path']}: failed: {file['detail']}", err=True)
    if not as_json:
        typer.echo(summary(report))
    if failed:
        raise typer.Exit(1)


def split(words: list[str]) -> tuple[list[str], str]:
    """The files and the address; ValueError says what is missing."""
    *files, last = words
    example = "longfat send FILE... ADDR, e.g. longfat send notes.txt 127.0.0.1:9000"
    if not addresses.looks_like_one(last) and (":" not in last or Path(last).exists()):
        raise ValueError(f'"{last}" is no address, and the last word must be one (HOST:PORT): {example}')
    address = addresses.peer(last, "ADDR")
    if not files:
        raise ValueError(f"no file to send: {example}")
    return files, address


def _sent(files: list[str], address: str, protocol: dict[str, Any]) -> dict[str, Any]:
    """Sends with progress; gives the report. What had arrived when it broke is told with the error."""
    from longfat.cli.transfer_progress import size, transfers

    display = transfers()
    state = {"done": 0, "total": 0}

    def show(text: str) -> None:
        now = json.loads(text)
        label = f"{now['name']} ({now['file'] + 1} of {now['files']})" if now["files"] > 1 else now["name"]
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
    from longfat.cli.transfer_progress import size

    if file["outcome"] == "already":
        return f"{file['path']}: already there as {file['detail']}"
    resumed = f", {size(file['resumed'])} of it from an earlier transfer" if file["resumed"] else ""
    return f"{file['path']}: stored as {file['detail']}, {size(file['size'])}{resumed}"


def summary(report: dict[str, Any]) -> str:
    """What the sending came to, in a line.

    >>> summary({"bytes": 2_000_000, "seconds": 1.6, "goodput_bps": 1e7, "packets_sent": 1530,
    ...          "retransmissions": 30})
    '2.00 MB in 1.6 s: 10.0 Mbit/s; 1,530 packets, 30 sent again: 2.0 % more than needed'
    """
    from longfat.cli.transfer_progress import rate, size
    from longfat.runner.progress import clock

    sent, again = report["packets_sent"], report["retransmissions"]
    beyond = f": {again / max(1, sent - again):.1%} more than needed".replace("%", " %") if again else ""
    return (
        f"{size(report['bytes'])} in {clock(report['seconds'])}: {rate(report['goodput_bps'])}; "
        f"{sent:,} packets, {again:,} sent again{beyond}"
    )
