"""`longfat echo`: answers round trips and transactions."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from longfat.cli.measuring import ECHO_PORT


def echo(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of UDP and TCP; 0 takes any free one.")
    ] = ECHO_PORT,
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where to listen. By default for this machine alone; 0.0.0.0 lets others in.",
        ),
    ] = "127.0.0.1",
    rate: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Answers a second to one source, at most.")
    ] = 20_000,
    total_rate: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Answers a second to all, at most.")
    ] = 100_000,
    connections: Annotated[
        int, typer.Option(min=1, max=4096, help="Connections at a time; others are reset.")
    ] = 256,
    idle: Annotated[
        str, typer.Option(metavar="DURATION", help="A connection that says nothing for so long is reset.")
    ] = "10s",
    as_json: Annotated[bool, typer.Option("--json", help="At the end print one JSON document.")] = False,
) -> None:
    """Answer longfat ping and longfat transact until Ctrl-C: UDP, TCP and TCP Fast Open on one port (Linux).

    A request is answered by as many bytes, never by more; datagrams without the project's header are not
    answered at all, so that no forged sender makes two servers answer each other. Connections, requests and
    memory are bounded. It takes no privilege and gives up those that it has.

    \b
    Examples:
      longfat echo
      longfat echo --bind 0.0.0.0
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli import measuring
    from longfat.cli.arguments import addresses
    from longfat.cli.signals import end_like_ctrl_c

    try:
        host = ipaddress.ip_address(bind)
    except ValueError:
        raise ValueError(
            f'--bind: "{bind}" is no address: write one like 127.0.0.1, 0.0.0.0 or ::1'
        ) from None
    options = {
        "listen": f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}",
        "per_source": rate,
        "in_all": total_rate,
        "connections": connections,
        "idle": measuring.duration("--idle", idle, 0.01, 3600),
    }
    begun: dict[str, Any] = {}
    show, close = measuring.live(line)

    def tell(text: str) -> None:
        if begun:
            return show(text)
        begun.update(json.loads(text))
        address = begun["listening"]
        typer.echo(f"Listening at {address} with UDP and TCP (Ctrl-C ends)", err=True)
        if addresses.is_open(address):
            typer.echo("Whoever reaches this address is answered, with as many bytes as he sends.", err=True)
        if begun["note"]:
            typer.echo(begun["note"], err=True)
        return None

    end_like_ctrl_c()
    try:
        counts = json.loads(_native.echo(json.dumps(options), tell))
    finally:
        close()
    if as_json:
        typer.echo(json.dumps({**begun, **counts}, indent=2))
    else:
        typer.echo(line(counts))


def line(counts: Mapping[str, Any]) -> str:
    """What a server did, in a line.

    >>> zero = {"malformed": 0, "limited": 0, "broken": 0, "user_transactions": 0}
    >>> line({**zero, "datagrams": 3, "connections": 2, "fast_opened": 1, "received": 900, "sent": 900})
    'Answered 3 datagrams and 2 connections (1 by TCP Fast Open), 900 B in, 900 B out'
    """
    from longfat.presentation.formatting import quantity

    def amount(value: int) -> str:
        return quantity(value, "B") if value >= 1000 else f"{value} B"

    user = counts["user_transactions"]
    users = f", {user:,} transactions over user-space TCP" if user else ""
    opened = f" ({counts['fast_opened']} by TCP Fast Open)" if counts["fast_opened"] else ""
    told = f"Answered {counts['datagrams']:,} datagrams and {counts['connections']:,} connections"
    told += f"{opened}{users}, {amount(counts['received'])} in, {amount(counts['sent'])} out"
    for key, what in (
        ("malformed", "datagrams that were no requests"),
        ("limited", "too many to be answered"),
        ("broken", "connections broken off"),
    ):
        if counts[key]:
            told += f"; {counts[key]:,} {what}"
    return told
