"""Standard output of commands that print one document or one table for other programs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import typer

_RESERVED: list[TextIO] = []
"""The standard output while it is reserved."""


@contextlib.contextmanager
def reserved() -> Iterator[None]:
    """Reserves standard output for `write` and `document`.

    All other output goes to standard error: prints of a study's classes, and output of child processes.
    """
    out = sys.stdout
    descriptor = _descriptor(out)
    target = out
    if descriptor is not None:
        out.flush()
        target = os.fdopen(os.dup(descriptor), "w", encoding=out.encoding, errors=out.errors)
        os.dup2(sys.stderr.fileno(), descriptor)
    _RESERVED.append(target)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = out
        _RESERVED.pop()
        if descriptor is not None:
            os.dup2(target.fileno(), descriptor)
            with contextlib.suppress(BrokenPipeError):
                target.close()


def _descriptor(out: TextIO) -> int | None:
    """Returns the file descriptor of a stream; None if it or standard error has none, as in tests."""
    try:
        sys.stderr.fileno()
        return out.fileno()
    except (OSError, AttributeError, io.UnsupportedOperation):
        return None


def write(text: str) -> None:
    """Writes text to the standard output, also while it is reserved."""
    out = _RESERVED[-1] if _RESERVED else sys.stdout
    out.write(text)
    out.flush()


def document(content: Any) -> None:
    """Writes one JSON document."""
    write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def reserve(context: typer.Context, requested: bool) -> bool:
    """The callback of `--json`: reserves standard output for the document until the command ends."""
    if requested:
        context.with_resource(reserved())
    return requested
