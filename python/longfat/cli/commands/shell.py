"""`longfat shell`: a command behind an emulated path, between real kernels."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import HostCapture, HostCongestion, HostSysctls, PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import NEAR, as_subscriber

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATH = SectionOptions("path", left_out=("reverse", "hops"), defaults={"subscriber": NEAR})
_TCP = SectionOptions(
    "protocol", whole=lambda keys: json.dumps({"kind": "tcp", **json.loads(keys)}), setter="--tcp"
)


Place = Literal["here", "there", "both"]
"""Ends of the path."""


@_PATH.added_to
@command(
    command=typer.Argument(metavar="-- COMMAND"),
    server=typer.Option(metavar="COMMAND"),
    model=typer.Option("--path", metavar="FILE"),
    tcp=typer.Option(metavar="KEY=VALUE"),
    wait_port=typer.Option(metavar="PORT"),
)
def shell(
    command: list[str] | None = None,
    *,
    server: str | None = None,
    model: str | None = None,
    settings: PathSettings = None,
    stack: Place | None = None,
    tcp: list[str] | None = None,
    wait_port: str | None = None,
    congestion: HostCongestion = None,
    sysctl: HostSysctls = None,
    pcapng: HostCapture = None,
    seed: Seed = 1,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Summary as JSON, in the last line of standard error."),
    ] = False,
    given: Given,
) -> None:
    """Run a command, or your shell, behind an emulated path (Linux).

    \b
    Examples:
      longfat shell --rate 20Mbit/s --delay 30ms --loss 1% -- sh -c 'ping -c 10 $LONGFAT_PEER'
      longfat shell --preset lte --server 'iperf3 -s' --wait-port 5201 -- iperf3 -c receiver

    Args:
        command: Command with its arguments; by default your shell.
        server: Command line for sh at the far end, started before the command and stopped with it.
        model: Path model: a TOML file with a table [path]; --set changes its keys, e.g. hops.2.loss=1%.
        stack: Ends with longfat's TCP instead of the kernel's: here is the command's.
        tcp: Key of longfat's TCP (longfat list protocols), e.g. congestion=vegas.
        wait_port: Port at which the server must listen before the command starts, e.g. 5201 or 53/udp.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.testbed import children, programs

    path = as_subscriber(_PATH.read(given, settings or (), _model(model)))
    own = _own_tcp(stack, tcp or ())
    if wait_port is not None and server is None:
        raise ValueError("--wait-port requires --server")
    try:
        port = None if wait_port is None else programs.port(wait_port)
    except ValueError as error:
        raise ValueError(f"--wait-port: {error}") from None
    hosts = programs.options(sysctl or (), congestion, pcapng)
    if not command and sys.stdin.isatty():
        typer.echo("Shell behind the path; the far end is $LONGFAT_PEER. exit stops it.", err=True)
    # The native part takes the exceptions of signals, stops the command, and reports its links.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        report: dict[str, Any] = json.loads(
            _native.shell(
                json.dumps(path),
                command or [],
                seed=seed,
                server=server,
                tcp=own,
                programs=hosts,
                wait_port=port,
            )
        )
    except OSError as error:
        if error.errno is None or not error.filename:
            raise
        typer.echo(f"longfat: {children.why(error)}", err=True)
        raise typer.Exit(children.code_of(error)) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if code := report.get("server_code"):
        typer.echo(f"longfat: --server: exited with code {code} before the command: {server}", err=True)
    if pcapng is not None and (line := programs.capture_line(pcapng, report["capture"])):
        typer.echo(f"longfat: {line}", err=True)
    if as_json:
        typer.echo(json.dumps({"seed": seed, **report}), err=True)
    else:
        from longfat.cli.display.shell import show

        show(report)
    raise typer.Exit(report["code"])


def _terminate(_number: int, _frame: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _model(file: str | None) -> dict[str, Any] | None:
    """Returns the path of a model file. Raises ValueError with its mistakes."""
    if file is None:
        return None
    from longfat.study import path_model

    try:
        return path_model.read(file).path
    except ValueError as error:
        raise ValueError(f"--path: {error}") from None


def _own_tcp(stack: Place | None, settings: Sequence[str]) -> tuple[str | None, str | None]:
    """Returns longfat's TCP at the near and the far end, as JSON. Raises ValueError with its mistakes."""
    if stack is None:
        if settings:
            raise ValueError("--tcp requires --stack here, there or both")
        return None, None
    found = _TCP.read({}, settings)
    for key in ("kind", "stack"):
        if key in found:
            raise ValueError(f"--tcp: {key}: cannot be changed, it is always longfat's TCP")
    for key in ("fast_open", "ttcp"):
        if found.get(key):
            raise ValueError(f"--tcp: {key}: unavailable, because programs connect before they write")
    config = json.dumps({"kind": "tcp", **found})
    return (config if stack != "there" else None, config if stack != "here" else None)
