"""`longfat key`: the user's key, and the keys that the user trusts."""

from __future__ import annotations

import os
from pathlib import Path as File

import typer

from longfat.api import protection as credentials
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson


@command(trust=typer.Option(metavar="KEY"), name=typer.Option(metavar="NAME"))
def key(
    *,
    trust: str | None = None,
    code: bool = False,
    name: str = "",
    identity: File | None = None,
    trusted: File | None = None,
    as_json: AsJson = False,
) -> None:
    """Print this user's public key for send and recv --keys; create it if there is none.

    \b
    Examples:
      longfat key
      longfat key --trust KEY --name laptop

    Args:
        trust: Public key to trust from now on.
        code: A new code for recv and send --code instead of this host's key.
        name: Name of the key to trust, for messages.
        identity: Secret key; by default ~/.config/longfat/identity.
        trusted: Trusted public keys; by default ~/.config/longfat/trusted.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native

    if code:
        if trust is not None or name or identity is not None or trusted is not None:
            raise ValueError("--code prints a new code and uses no key: give it alone")
        typer.echo(_native.new_code())
        return
    if trust is None:
        if name:
            raise ValueError("--name is the name of a key to trust: it needs --trust KEY")
        path = identity or credentials.identity_file()
        is_new = not path.exists()
        if is_new:
            _create(path)
            typer.echo(f"longfat: created {path}", err=True)
        public = _native.public_key(credentials.read_identity(path))
        if as_json:
            # The file is named, its content is secret.
            standard_output.document({"public_key": public, "identity": str(path), "is_new": is_new})
        else:
            typer.echo(public)
        return
    path = trusted or credentials.trusted_file()
    added = _trust(path, trust.strip(), name)
    if as_json:
        about = {"public_key": trust.strip(), "name": name or None, "trusted": str(path), "is_new": added}
        standard_output.document(about)
    elif added:
        typer.echo(f"{path}: added {name or trust.strip()}")
    else:
        typer.echo(f"{path}: this key is trusted already")


def _create(path: File) -> None:
    from longfat import _native

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{_native.new_identity()}\n")


def _trust(path: File, key: str, name: str) -> bool:
    """Adds a key to the trusted ones, and returns whether it was not among them."""
    from longfat import _native

    try:
        _native.check_public_key(key)
    except ValueError as error:
        raise ValueError(f"--trust: {error}") from None
    if not name.isprintable():
        raise ValueError("--name: the name contains characters that cannot be seen")
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    if any(line.split()[:1] == [key] for line in present.splitlines()):
        return False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("" if present.endswith("\n") or not present else "\n")
        file.write(f"{key} {name}".rstrip() + "\n")
    return True
