"""Whether HTML loads something from the network."""

from __future__ import annotations

import re

_LOADED = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>", re.IGNORECASE
)
_FETCHED = re.compile(r"[\"'](?:https?:)?//[^\"']*(?:/npm/|\.m?js\b)[^\"']*[\"']")


def loaded(html: str) -> list[str]:
    """Returns the elements that load a script, style, image or frame from the network.

    >>> loaded('<script src="https://cdn.example/vega.js"></script><a href="https://example.org">x</a>')
    ['<script src="https://cdn.example/vega.js">']
    """
    return _LOADED.findall(html)


def fetched(output: str) -> list[str]:
    """Returns what an output of a notebook loads, URLs of scripts in its own scripts included.

    >>> fetched('<script>load({vega: "https://cdn.example/npm/vega@6?noext"})</script>')
    ['"https://cdn.example/npm/vega@6?noext"']
    """
    return [*loaded(output), *_FETCHED.findall(output)]
