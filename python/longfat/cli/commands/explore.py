"""`longfat explore`: the simulator in a local web page."""

from __future__ import annotations

from contextlib import suppress

import typer

from longfat.cli.arguments.from_function import command


@command(port=typer.Option(min=0, max=65_535), native=typer.Option("--native/--wasm"))
def explore(
    scene: str = "",
    *,
    port: int = 0,
    browser: bool = True,
    native: bool = True,
) -> None:
    """Watch and change running simulations in a local web page until Ctrl-C.

    \b
    Examples:
      longfat explore
      longfat explore lesson=5 --no-browser

    Args:
        scene: Scene: a lesson such as "lesson=5", or the part of a link after #.
        port: Port on 127.0.0.1; 0 for any free one.
        browser: Whether a browser shows the page.
        native: Engine: the native simulator, or WebAssembly in the page.
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
