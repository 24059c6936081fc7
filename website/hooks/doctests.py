"""Examples in docstrings: prompts (`>>>`) without a heading become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^[ \t]*>>> [^\n]*\n?(?:^[ \t]*\S[^\n]*\n?)*\n*)+", re.MULTILINE)


def fenced(text: str) -> str:
    """Returns a docstring with its examples in blocks."""
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].strip()}\n```\n\n", text).rstrip()


class Doctests(griffe.Extension):
    """Puts the examples of all docstrings into blocks."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the docstring of an object."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
