"""`longfat echo`: a server for `longfat ping` and `longfat transact`."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

import typer

from longfat.api.defaults import ECHO_PORT
from longfat.api.quantities import Duration, duration
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson


@command(
    port=typer.Option(min=0, max=65_535),
    bind=typer.Option(metavar="ADDRESS"),
    rate=typer.Option(min=1, max=10_000_000),
    total_rate=typer.Option(min=1, max=10_000_000),
    connections=typer.Option(min=1, max=4096),
)
def echo(
    *,
    port: int = ECHO_PORT,
    bind: str = "127.0.0.1",
    rate: int = 20_000,
    total_rate: int = 100_000,
    connections: int = 256,
    idle: Duration = "10s",
    as_json: AsJson = False,
) -> None:
    """Answer longfat ping and longfat transact until Ctrl-C (Linux).

    \b
    Examples:
      longfat echo
      longfat echo --bind 0.0.0.0 --rate 1000

    Args:
        port: UDP and TCP port; 0 for any free one.
        bind: Local address; 0.0.0.0 admits other machines, the default only this one.
        rate: Most replies per second to one source.
        total_rate: Most replies per second in total.
        connections: Most open connections; further ones are reset.
        idle: Idle time after which a connection is reset.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.api import addresses
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.system.progress import display, shower

    try:
        host = ipaddress.ip_address(bind)
    except ValueError:
        raise ValueError(f'--bind: "{bind}" is not an IP address such as 0.0.0.0 or ::1') from None
    options = {
        "listen": f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}",
        "per_source": rate,
        "in_all": total_rate,
        "connections": connections,
        "idle": duration("idle", idle, 0.01, 3600),
    }
    first: dict[str, Any] = {}
    progress = display(log=False)
    show = shower(progress, summary)

    def handle(text: str) -> None:
        if first:
            return show(text)
        first.update(json.loads(text))
        address = first["listening"]
        typer.echo(f"Listening on {address} over UDP and TCP (Ctrl-C stops)", err=True)
        if addresses.is_open(address):
            typer.echo("Every host that reaches this address is answered, byte for byte.", err=True)
        if first["note"]:
            typer.echo(first["note"], err=True)
        return None

    interrupt_on_sigterm()
    try:
        counts = json.loads(_native.echo(json.dumps(options), handle))
    finally:
        progress.close()
    if as_json:
        standard_output.document({**first, **counts})
    else:
        typer.echo(summary(counts))


def summary(counts: Mapping[str, Any]) -> str:
    """Returns the server's counters as one line.

    >>> zero = {"malformed": 0, "limited": 0, "broken": 0, "user_transactions": 0}
    >>> summary({**zero, "datagrams": 3, "connections": 2, "fast_opened": 1, "received": 900, "sent": 900})
    'Answered 3 datagrams and 2 connections (1 with TCP Fast Open), 900 B in, 900 B out'
    """
    from longfat.api.transfer_progress import size

    opened = f" ({counts['fast_opened']} with TCP Fast Open)" if counts["fast_opened"] else ""
    parts = [f"Answered {counts['datagrams']:,} datagrams and {counts['connections']:,} connections{opened}"]
    if user := counts["user_transactions"]:
        parts.append(f"{user:,} transactions over user-space TCP")
    parts += [f"{size(counts['received'])} in", f"{size(counts['sent'])} out"]
    refused = [
        f"; {counts[key]:,} {what}"
        for key, what in (
            ("malformed", "datagrams were no requests"),
            ("limited", "requests exceeded the rate"),
            ("broken", "connections broke"),
        )
        if counts[key]
    ]
    return ", ".join(parts) + "".join(refused)
