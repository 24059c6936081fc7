"""`longfat relay`: an emulated path between programs, in wall time."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from longfat.api import addresses, relays
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson, PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import NEAR, as_subscriber

_PATH = SectionOptions("path", left_out=("reverse", "hops"), defaults={"subscriber": NEAR})
_OF_ACTIONS = ("action", "control", "token")
"""Parameters that an action on a running relay uses."""


@_PATH.added_to
@command_of(
    relays.relay,
    without=["path", "listen", "wait", "tcp", "udp", "protocol", "control", "token"],
    to=typer.Option(metavar="HOST:PORT"),
    socks=typer.Option(metavar="HOST:PORT"),
    http_connect=typer.Option(metavar="HOST:PORT"),
    schedule=typer.Option(metavar="FILE"),
    pcapng=typer.Option(metavar="FILE"),
    seed=Seed,
)
def relay(
    *,
    action: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ACTION...]",
            help="Change of a running relay instead: set KEY=VALUE..., outage TIME, drop COUNT, reset "
            "or report.",
        ),
    ] = None,
    context: typer.Context,
    call: partial[Any],
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Local address for clients; port 0 for any free one; not with --tcp.  "
            f"[default: {addresses.LISTEN}]",
        ),
    ] = None,
    tcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LISTEN=TARGET",
            help="TCP connections from a local address to a server, "
            "e.g. 127.0.0.1:15432=127.0.0.1:5432; repeatable.",
        ),
    ] = None,
    udp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LISTEN=TARGET",
            help="UDP from a local address, which is not 0.0.0.0 or [::], to a server, on the path of --tcp; "
            "repeatable.",
        ),
    ] = None,
    congestion: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Congestion controller of TCP on the path.  [default: cubic]"),
    ] = None,
    tcp_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--tcp-set",
            metavar="KEY=VALUE",
            help="Key of TCP on the path (longfat list protocol), e.g. min_rto=1s; repeatable.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the control interface of TCP, e.g. 127.0.0.1:8475.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="LONGFAT_RELAY_TOKEN",
            help="Token of the control interface.  [default: a random one]",
        ),
    ] = None,
    settings: PathSettings = None,
    as_json: AsJson = False,
    given: Given,
) -> None:
    """Relay UDP datagrams or TCP connections over an emulated path until Ctrl-C.

    \b
    Examples:
      longfat relay --listen 127.0.0.1:9001 --to 127.0.0.1:9000 --rate 10Mbit/s --delay 20ms --loss 2%
      longfat relay --tcp 127.0.0.1:15432=127.0.0.1:5432 --preset lte --loss 1%
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.signals import interrupt_on_sigterm

    explicit = _explicit(context)
    if action:
        for name, option in explicit.items():
            if name not in _OF_ACTIONS:
                raise ValueError(f"{option}: not with {action[0]}, which changes a running relay")
        _change(action, control, token)
        return
    if control is None and "token" in explicit:
        raise ValueError("--token: it is the token of --control, which is not set")
    path = as_subscriber(_PATH.read(given, settings or ()))
    options: dict[str, Any] = {}
    is_tcp = tcp or call.keywords["socks"] or call.keywords["http_connect"]
    if tcp or udp or congestion or tcp_settings or control:
        options = {"tcp": tcp or (), "udp": udp or (), "protocol": _protocol(congestion, tcp_settings or ())}
        options |= {"control": control, "token": token} if control is not None else {}
        if not is_tcp:
            raise ValueError("--tcp: missing: write LISTEN=TARGET, or set --socks or --http-connect")
    interrupt_on_sigterm()
    if not is_tcp:
        listen = listen or addresses.LISTEN
    done = call(path, listen=listen, wait=True, **options)
    report = done.stop()
    seed = call.keywords["seed"]
    if isinstance(done, relays.Relay):
        _show_udp(done, report, seed, as_json=as_json)
    else:
        _show_tcp(done, report, seed, call.keywords["pcapng"], as_json=as_json)


def _explicit(context: typer.Context) -> dict[str, str]:
    """Returns the options of the command line, without those of the environment, by parameter."""
    return {
        parameter.name: parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name
        and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    }


def _protocol(congestion: str | None, settings: list[str] | tuple[()]) -> dict[str, Any]:
    from longfat.study import read_setting
    from longfat.study.keys import place

    found: dict[str, Any] = {"kind": "tcp"}
    if congestion is not None:
        found["congestion"] = congestion
    for text in settings:
        key, value = read_setting(text, "--tcp-set", "min_rto=1s")
        place(found, key, value)
    return found


def _show_udp(done: relays.Relay, report: dict[str, Any], seed: int, *, as_json: bool) -> None:
    from longfat.cli.display.relay import late, table
    from longfat.presentation import tables

    if as_json:
        about = {"listening": done.address, "path": done.path, "to": done.to}
        standard_output.document({**about, "seed": seed, **report})
        return
    tables.show(table(report))
    typer.echo(late(report))


def _show_tcp(done: Any, report: dict[str, Any], seed: int, pcapng: str | None, *, as_json: bool) -> None:
    from longfat.cli.display.relay import table
    from longfat.cli.display.tcp_relay import connections
    from longfat.presentation import tables
    from longfat.testbed.programs import capture_line

    if pcapng is not None and (line := capture_line(pcapng, report["capture"])):
        typer.echo(f"longfat: {line}", err=True)
    if as_json:
        listening = [
            {"listen": at, "target": pair.target, "transport": pair.transport}
            for at, pair in zip(done.addresses, done.pairs, strict=True)
        ]
        standard_output.document({"listening": listening, "path": done.path, "seed": seed, **report})
        return
    tables.show(table(report))
    typer.echo(connections(report))


def _change(action: list[str], control: str | None, token: str | None) -> None:
    """Changes a running relay through its control interface."""
    from longfat.api.relay_control import LISTEN
    from longfat.cli.relay_client import change

    if token is None:
        raise ValueError(
            "--token: missing: write the token that the relay printed, or set LONGFAT_RELAY_TOKEN"
        )
    answer = change(action, addresses.peer(control or LISTEN, "control"), token)
    if answer:
        standard_output.document(answer)
