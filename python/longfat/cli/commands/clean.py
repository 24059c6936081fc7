"""`longfat clean`: ends what emulated networks have left."""

from __future__ import annotations

import json
from typing import Any

import typer


def clean() -> None:
    """End what emulated networks that were killed have left, and say what it was.

    Namespaces and devices go with the process that made them; what can stay are processes of commands whose
    emulator is gone. Emulations that run are left alone. The exit code is 1 where something could not be
    ended.
    """
    from longfat import _native

    found: dict[str, list[dict[str, Any]]] = json.loads(_native.clean())
    for process in found["ended"]:
        typer.echo(f"ended process {process['process']}: {process['what']}")
    for process in found["left"]:
        typer.echo(
            f"longfat: may not end process {process['process']} ({process['what']}): "
            "run longfat clean as its owner or as root",
            err=True,
        )
    if found["left"]:
        raise typer.Exit(1)
    if not found["ended"]:
        typer.echo("Nothing was left behind")
