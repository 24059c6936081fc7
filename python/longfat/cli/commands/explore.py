"""`longfat explore`: the simulator in a local web page."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated

import typer

from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import Point, StudySettings

_SCENE = re.compile(r"#|lesson=|scene=|%7B|\{", re.IGNORECASE)
"""The start of a scene; everything else is a study."""


@command(port=typer.Option(min=0, max=65_535), native=typer.Option("--native/--wasm"))
def explore(
    scene: str = "",
    *,
    protocol: Annotated[
        list[str] | None,
        typer.Option(help="Name of a protocol in the study; repeatable.  [default: the first three]"),
    ] = None,
    cell: Point = None,
    settings: StudySettings = None,
    port: int = 0,
    browser: bool = True,
    native: bool | None = None,
) -> None:
    """Watch and change simulations, or read a qlog file, in a local web page.

    \b
    Examples:
      longfat explore l4s/sharing
      longfat explore scene=prague-cubic --no-browser

    Args:
        scene: Study, qlog file, a lesson such as "lesson=5", a scene, or the part of a link after #.
        port: Port on 127.0.0.1; 0 for any free one.
        browser: Whether a browser shows the page.
        native: Engine: the native simulator, or WebAssembly in the page; by default native.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.explorer_server import ExplorerServer, folder
    from longfat.cli.signals import interrupt_on_sigterm

    interrupt_on_sigterm()
    study = log = None
    if scene and not _SCENE.match(scene):
        from longfat.cli.explorer_log import log_file

        log = log_file(scene)
    if log is not None:
        engine = {None: {}, True: {"native": True}, False: {"wasm": True}}[native]
        _refuse_for_logs(scene, protocol=protocol, cell=cell, set=settings, **engine)
        scene = ""
    elif scene and not _SCENE.match(scene):
        from longfat.cli.arguments.cells import load
        from longfat.cli.explorer_study import served

        study = served(load(scene, settings), protocol or (), cell or ())
        scene = ""
    elif protocol or cell or settings:
        raise ValueError("--protocol, --cell and --set choose a cell of a study: longfat explore STUDY")

    with ExplorerServer(folder(wasm=native is False), port, study, log) as server:
        address = server.address(scene.removeprefix("#"), native=native is not False)
        typer.echo(address)
        typer.echo("Ctrl-C stops the explorer", err=True)
        if browser:
            import webbrowser

            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _refuse_for_logs(log: str, **options: object) -> None:
    """Raises ValueError if options of scenes and studies are given for a qlog file."""
    given = [f"--{name}" for name, value in options.items() if value]
    if given:
        raise ValueError(f"{', '.join(given)}: {log} is a qlog file; the options are for scenes and studies")
