"""`longfat explore`: the simulator in a local web page."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer


def explore(
    scene: Annotated[
        str, typer.Argument(help='Scene: a lesson such as "lesson=5", or the part of a link after #.')
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 for any free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether a browser shows the page.")
    ] = True,
    native: Annotated[
        bool,
        typer.Option("--native/--wasm", help="Engine: the native simulator, or WebAssembly in the page."),
    ] = True,
) -> None:
    """Watch and change running simulations in a local web page until Ctrl-C.

    \b
    Examples:
      longfat explore
      longfat explore lesson=5 --no-browser
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.explorer_server import ExplorerServer, folder
    from longfat.cli.signals import interrupt_on_sigterm

    interrupt_on_sigterm()

    with ExplorerServer(folder(wasm=not native), port) as server:
        address = server.address(scene, native=native)
        typer.echo(address)
        if browser:
            import webbrowser

            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
