"""How the peers of a file transfer authenticate each other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from longfat.system.parameters import ParameterError
from longfat.system.user_folders import config_folder


@dataclass(frozen=True)
class Protection:
    """How the peers of a transfer authenticate each other."""

    document: str
    """The JSON text for the native part."""
    code: str | None = None
    """The code, if they use one."""
    insecure: bool = False
    """Whether they do not authenticate each other at all."""


INSECURE = Protection(json.dumps({"kind": "none"}), insecure=True)
"""Neither encryption nor authentication."""


def by_code(code: str) -> Protection:
    """Returns the protection by a valid code."""
    return Protection(json.dumps({"kind": "code", "code": code}), code)


def identity_file() -> Path:
    """Returns the file of the user's secret key."""
    return config_folder() / "identity"


def trusted_file() -> Path:
    """Returns the file of the public keys that the user trusts."""
    return config_folder() / "trusted"


def chosen(
    code: str | None, keys: bool, identity: Path | None, trusted: Path | None, insecure: bool
) -> Protection | None:
    """Returns the protection that parameters choose, if they do. Raises ParameterError."""
    from longfat import _native

    keys = keys or identity is not None or trusted is not None
    if (code is not None) + keys + insecure > 1:
        raise ParameterError("", "choose one of {code}, {keys} and {insecure}")
    if insecure:
        return INSECURE
    if keys:
        return _by_keys(identity or identity_file(), trusted or trusted_file())
    if code is None:
        return None
    try:
        _native.check_code(code)
    except ValueError as error:
        raise ParameterError(
            "code", f"{error}; use one that longfat recv or longfat key --code prints"
        ) from None
    return by_code(code)


def read_identity(path: Path) -> str:
    """Returns the text of a secret key's file. Raises ValueError if it is not valid or others can read it."""
    from longfat import _native

    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ValueError(f"{path}: no such key (longfat key creates one)") from None
    if mode & 0o077:
        raise ValueError(f"{path}: other users can access this secret key (fix: chmod 600 {path})")
    try:
        _native.public_key(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return text


def _by_keys(identity: Path, trusted: Path) -> Protection:
    from longfat import _native

    own = read_identity(identity)
    try:
        keys = trusted.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{trusted}: no such file (longfat key --trust KEY creates it)") from None
    try:
        count = _native.count_trusted(keys)
    except ValueError as error:
        raise ValueError(f"{trusted}:{error}") from None
    if not count:
        raise ValueError(f"{trusted}: no trusted key (add one with longfat key --trust KEY)")
    return Protection(json.dumps({"kind": "keys", "identity": own, "trusted": keys}))
