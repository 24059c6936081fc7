"""Vega, Vega-Lite and Vega-Embed as one script that a report carries in itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import vl_convert

from longfat.files import write_whole

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
"""The version of Vega-Lite that the specifications are written for: Altair's, which takes long to import."""
VEGA_LITE = "6.4"
"""The same version as the converter names it."""

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def bundle() -> str:
    """The script. Making it takes a second, so the user's cache folder keeps it."""
    parts = ("vega", vl_convert.get_vega_version(), VEGA_LITE, vl_convert.get_vega_embed_version())
    kept = _cache() / f"{'-'.join(parts)}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGA_LITE)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, script.encode())
    return script


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "longfat"
