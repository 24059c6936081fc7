"""`longfat net`: the network of a study as a testbed to work in."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from longfat.cli.arguments.options import OneStudy, Point, StudySeed, StudySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longfat._native import Testbed

_STOP_S = 10.0
_STOPPED = 143
"""128 and the number of SIGTERM, by which a testbed is told to end."""


class _Default(TyperGroup):
    """Takes a first word that is no command for a study's: `longfat net STUDY`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            args = ["--help"]
        elif args[0] not in self.commands and "--help" not in args:
            args = ["open", *args]
        return super().parse_args(ctx, args)


net = typer.Typer(
    cls=_Default,
    rich_markup_mode=None,
    help="Build the network of a study between real kernels, and work in it (Linux): longfat net STUDY.",
)


@net.command("open")
def open_(
    study: OneStudy,
    cell: Point = None,
    protocol: Annotated[
        str | None, typer.Option(help="Name of the protocol in the study; the first one by default.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the prompt's lines from a file, then end.")
    ] = None,
    pingall: Annotated[bool, typer.Option("--pingall", help="Ping between all hosts, then end.")] = False,
    name: Annotated[
        str | None, typer.Option(help="What others call the testbed; the study's name by default.")
    ] = None,
    settings: StudySettings = None,
    seed: StudySeed = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --pingall: print one JSON list.")] = False,
) -> None:
    """Build the network of a study and open a prompt. This is what `longfat net STUDY` does.

    Each host is a namespace with Linux's own TCP/IP, the links are the study's on wall time, and nothing
    reaches the network outside. The prompt's lines may also come from --run or from standard input; then the
    exit code is 1 where one of them failed. Everything ends with the testbed, whatever ends it.

    \b
    Examples:
      longfat net congestion/delay
      longfat net my-study.toml --cell path.loss=2% --pingall
      longfat net exec sender -- ping -c 3 receiver
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.cells import find_cell
    from longfat.study import Overrides, load_study, read_setting

    if as_json and not pingall:
        raise ValueError("--json goes with --pingall")
    if pingall and run is not None:
        raise ValueError("--pingall and --run: choose one of them, or write pingall into the file")
    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    place = find_cell(loaded, protocol or loaded.protocols[0].name, cell or ())
    spec = {**place.spec, "seed": loaded.seed, "trial": 0}
    with contextlib.ExitStack() as held:
        lines: IO[str] = sys.stdin if run is None else held.enter_context(run.open(encoding="utf-8"))
        signal.signal(signal.SIGTERM, _end)
        testbed = held.enter_context(_served(spec, name, loaded.name))
        if pingall:
            code = _ping_all(testbed, as_json=as_json)
        else:
            code = _prompt(testbed, lines, interactive=run is None and sys.stdin.isatty())
    raise typer.Exit(code)


def _end(_number: int, _frame: object) -> None:
    raise SystemExit(_STOPPED)


@contextlib.contextmanager
def _served(spec: dict[str, Any], name: str | None, study: str) -> Iterator[Testbed]:
    """The testbed, which others can reach meanwhile."""
    from longfat import _native
    from longfat.testbed.directory import listen

    # First the name, which may be refused. No thread may run before the testbed has got its permissions.
    listening, known = listen(name, study)
    with listening:
        testbed = _native.Testbed(json.dumps(spec))
        from longfat.testbed.server import Server

        server = Server(testbed, listening, study)
        if sys.stdin.isatty():
            hosts = [host["name"] for host in json.loads(testbed.hosts())]
            typer.echo(f"Testbed {known}: hosts {', '.join(hosts)}. help shows what there is.", err=True)
        try:
            yield testbed
        finally:
            server.close()
            testbed.close()


def _ping_all(testbed: Testbed, *, as_json: bool) -> int:
    from longfat.testbed import tables
    from longfat.testbed.prompt import PINGS

    pings = json.loads(testbed.ping_all(PINGS))
    if as_json:
        typer.echo(json.dumps(pings, indent=2))
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
            import readline  # noqa: F401 - gives the prompt its keys and history
    prompt = Prompt(testbed, lines, interactive=interactive)
    prompt.run()
    return 1 if prompt.failed and not interactive else 0


@net.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    host: Annotated[
        str, typer.Argument(metavar="[NAME:]HOST", help="The host, and where several run the testbed.")
    ],
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="What to run, with its arguments.")
    ],
) -> None:
    """Run a command at a host of a running testbed.

    It has this directory and environment, at a terminal a terminal of its own, and ends with this command
    or the testbed. The exit code is the command's; 127 where there is no such command.
    """
    from longfat.testbed import directory
    from longfat.testbed.client import execute

    words = command[1:] if command[0] == "--" else command
    if not words:
        raise ValueError("write the command after the host, e.g. longfat net exec h1 -- ip address")
    name, at = directory.find(host)
    raise typer.Exit(execute(name, at, words))


@net.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Show the testbeds that are running."""
    from longfat.testbed import directory

    found = []
    for name in directory.names():
        # One that has just ended is none.
        with contextlib.suppress(OSError, ValueError):
            found.append(directory.describe(name))
    if as_json:
        told = [{"name": one.name, "pid": one.pid, "study": one.study, "hosts": one.hosts} for one in found]
        typer.echo(json.dumps(told, indent=2))
        return
    for one in found:
        typer.echo(f"{one.name}: {one.study}, process {one.pid}, hosts {', '.join(one.hosts)}")
    if not found:
        typer.echo("No testbed is running")


@net.command("stop")
def stop(
    name: Annotated[
        str | None, typer.Argument(help="The testbed; may be left out where only one is running.")
    ] = None,
) -> None:
    """End a testbed and all commands in it."""
    from longfat.local_sockets import peer
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
    typer.echo(f"{wanted} has ended")
