"""`longfat net`: the network of a study as a testbed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path as File
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.mistakes import NamingCommand
from longfat.cli.arguments.options import (
    AsJson,
    HostCapture,
    HostCongestion,
    HostSysctls,
    OneStudy,
    Point,
    StudySeed,
    StudySettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longfat._native import Testbed

_STOP_S = 10.0
_PATIENCE_S = 5.0
"""How long commands have after SIGTERM when the testbed ends by itself or by `longfat net stop`."""
_PATIENCE_ON_SIGNAL_S = 1.0
_STOPPED = 143
"""128 and the number of SIGTERM, which stops a testbed."""


class _DefaultsToOpen(TyperGroup):
    """Takes a first argument that is not a command as a study: `longfat net STUDY`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            args = ["--help"]
        elif args[0] not in self.commands and "--help" not in args:
            args = ["open", *args]
        return super().parse_args(ctx, args)


net = typer.Typer(
    cls=_DefaultsToOpen,
    rich_markup_mode=None,
    help="""Emulate the network of a study, with a prompt for commands at its hosts (Linux).

    \b
    Examples:
      longfat net congestion/delay
      longfat net exec sender -- ping -c 3 receiver
    """,
)


@net.command("open", cls=NamingCommand)
@command()
def open_(
    study: OneStudy,
    *,
    cell: Point = None,
    protocol: str | None = None,
    run: File | None = None,
    pingall: bool = False,
    name: str | None = None,
    congestion: HostCongestion = None,
    sysctl: HostSysctls = None,
    pcapng: HostCapture = None,
    settings: StudySettings = None,
    seed: StudySeed = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --pingall: output as one JSON list.")] = False,
) -> None:
    """Emulate a study's network; the same as longfat net STUDY.

    \b
    Examples:
      longfat net congestion/delay
      longfat net arq/loss --cell path.loss=2% --pingall

    Args:
        protocol: Name of the protocol in the study; by default the first.
        run: File with lines for the prompt.
        pingall: Ping between all hosts only.
        name: Name of the testbed; by default the study's.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.cells import find_cell, load
    from longfat.testbed import programs

    if as_json and not pingall:
        raise ValueError("--json requires --pingall")
    if pingall and run is not None:
        raise ValueError("--pingall and --run exclude each other: write pingall into the file")
    loaded = load(study, settings, seed)
    place = find_cell(loaded, protocol or loaded.protocols[0].name, cell or ())
    spec = {**place.spec, "seed": loaded.seed, "trial": 0}
    hosts = programs.options(sysctl or (), congestion, pcapng)
    with contextlib.ExitStack() as stack:
        lines: IO[str] = sys.stdin if run is None else stack.enter_context(run.open(encoding="utf-8"))
        signal.signal(signal.SIGTERM, _stop)
        testbed = stack.enter_context(_served(spec, hosts, name, loaded.name, pcapng))
        if pingall:
            code = _ping_all(testbed, as_json=as_json)
        else:
            code = _prompt(testbed, lines, interactive=run is None and sys.stdin.isatty())
    raise typer.Exit(code)


def _stop(_number: int, _frame: object) -> None:
    # Later signals only end the wait for commands.
    raise SystemExit(_STOPPED)


@contextlib.contextmanager
def _served(
    spec: dict[str, Any], options: str, name: str | None, study: str, pcapng: File | None
) -> Iterator[Testbed]:
    """Yields the testbed, which other processes can reach meanwhile."""
    from longfat import _native
    from longfat.testbed import programs
    from longfat.testbed.directory import listen

    # The name may be taken: reserve it first. Threads must not run before the testbed has its permissions.
    listening, known = listen(name, study)
    with listening:
        testbed = _native.Testbed(json.dumps(spec), options)
        from longfat.testbed.server import Server

        server = Server(testbed, listening, study)
        if sys.stdin.isatty():
            hosts = [host["name"] for host in json.loads(testbed.hosts())]
            typer.echo(f"Testbed {known}: hosts {', '.join(hosts)}. Type help for the commands.", err=True)
            kernel = json.loads(testbed.kernel())
            for line in programs.lines(kernel["controller"], kernel["sysctls"]):
                typer.echo(line, err=True)
        patience = _PATIENCE_S
        try:
            yield testbed
        except (KeyboardInterrupt, SystemExit):
            patience = _PATIENCE_S if server.is_stopping else _PATIENCE_ON_SIGNAL_S
            raise
        finally:
            server.close()
            report = testbed.close(patience)
            if pcapng is not None and report:
                missing = programs.capture_line(pcapng, json.loads(report))
                if missing:
                    typer.echo(f"longfat: {missing}", err=True)


def _ping_all(testbed: Testbed, *, as_json: bool) -> int:
    from longfat.testbed import tables
    from longfat.testbed.prompt import PINGS

    pings = json.loads(testbed.ping_all(PINGS))
    if as_json:
        standard_output.document(pings)
    else:
        tables.show(tables.ping_all(pings))
    lost = tables.unreachable(pings)
    if lost:
        typer.echo(f"longfat: no answer: {', '.join(lost)}", err=True)
    return 1 if lost else 0


def _prompt(testbed: Testbed, lines: IO[str], *, interactive: bool) -> int:
    from longfat.testbed.prompt import Prompt

    if interactive:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - adds editing keys and history to the prompt
    prompt = Prompt(testbed, lines, interactive=interactive)
    prompt.run()
    return 1 if prompt.failed and not interactive else 0


@net.command("exec", context_settings={"allow_interspersed_args": False})
@command(host=typer.Argument(metavar="[NAME:]HOST"), program=typer.Argument(metavar="-- COMMAND"))
def exec_(host: str, program: list[str]) -> None:
    """Run a command at a host of a testbed.

    \b
    Examples:
      longfat net exec sender -- ping -c 3 receiver
      longfat net exec congestion-delay:sender -- ip address

    Args:
        host: Host, with the testbed's name if several run.
        program: Command with its arguments.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.testbed import directory
    from longfat.testbed.client import execute

    line = program[1:] if program[0] == "--" else program
    if not line:
        raise ValueError("write the command after the host, e.g. longfat net exec h1 -- ip address")
    name, at = directory.find(host)
    raise typer.Exit(execute(name, at, line))


@net.command("list")
def list_(
    as_json: AsJson = False,
) -> None:
    """List the running testbeds.

    \b
    Examples:
      longfat net list
      longfat net list --json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.testbed import directory

    found = []
    for name in directory.names():
        # A testbed may stop between the two calls.
        with contextlib.suppress(OSError, ValueError):
            found.append(directory.describe(name))
    if as_json:
        listed = [{"name": one.name, "pid": one.pid, "study": one.study, "hosts": one.hosts} for one in found]
        standard_output.document(listed)
        return
    for one in found:
        typer.echo(f"{one.name}: {one.study}, process {one.pid}, hosts {', '.join(one.hosts)}")
    if not found:
        typer.echo("No testbed is running")


@net.command("stop")
@command()
def stop(name: str | None = None) -> None:
    """Stop a testbed and all commands in it.

    \b
    Examples:
      longfat net stop
      longfat net stop congestion-delay

    Args:
        name: Name of the testbed; by default the only one.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.system.local_sockets import peer
    from longfat.testbed import directory

    wanted = directory.only(name)
    with directory.connect(wanted) as connection:
        pid, _ = peer(connection)
        connection.send(json.dumps({"do": "stop"}).encode())
        directory.receive(connection)
    deadline = time.monotonic() + _STOP_S
    while wanted in directory.names():
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    typer.echo(f"{wanted} stopped")
