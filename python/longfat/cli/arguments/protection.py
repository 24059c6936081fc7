"""Options of file transfers that choose how the peers authenticate each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from longfat.api import protection
from longfat.api.protection import Protection

Code = Annotated[
    str | None,
    typer.Option(
        "--code",
        metavar="CODE",
        envvar="LONGFAT_CODE",
        show_envvar=False,
        help="Code that the receiver prints; LONGFAT_CODE hides it from other users of the machine.",
    ),
]
Keys = Annotated[
    bool, typer.Option("--keys", help="Authenticate by keys instead of a code (see longfat key).")
]
Identity = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Secret key for --keys; default ~/.config/longfat/identity.", show_default=False
    ),
]
Trusted = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Trusted public keys for --keys; default ~/.config/longfat/trusted.",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Neither encrypt nor authenticate, for laboratory networks.")
]


def chosen(
    code: str | None, keys: bool, identity: Path | None, trusted: Path | None, insecure: bool
) -> Protection | None:
    """Returns the protection that options choose; a code from the environment gives way to another option."""
    by_keys = keys or identity is not None or trusted is not None
    code = None if (by_keys or insecure) and code == os.environ.get("LONGFAT_CODE") else code
    return protection.chosen(code, keys, identity, trusted, insecure)
