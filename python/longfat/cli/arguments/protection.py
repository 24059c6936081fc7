"""The code of a file transfer, from an option or the environment."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import typer

_VARIABLE = "LONGFAT_CODE"
CODE = typer.Option(metavar="CODE", envvar=_VARIABLE)
"""The option, whose variable hides the code from other users of the machine."""


def is_chosen(call: partial[Any]) -> bool:
    """Returns whether options choose something else than a code."""
    given = call.keywords
    return (
        given["keys"] or given["insecure"] or any(given[key] is not None for key in ("identity", "trusted"))
    )


def code_of(call: partial[Any]) -> str | None:
    """Returns the code for a transfer; one from the environment gives way to other options."""
    code: str | None = call.keywords["code"]
    return None if is_chosen(call) and code == os.environ.get(_VARIABLE) else code
