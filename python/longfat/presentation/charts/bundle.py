"""Vega, Vega-Lite and Vega-Embed as one script for reports."""

from __future__ import annotations

import contextlib

import vl_convert

from longfat.system.files import write_whole
from longfat.system.user_folders import cache_folder

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
"""The Vega-Lite version of the specifications: that of Altair, whose import is slow."""
VEGA_LITE = "6.4"
"""The same version as named by the converter."""

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def bundle() -> str:
    """Returns the script. Building it takes a second, so it is cached in the user's cache folder."""
    parts = ("vega", vl_convert.get_vega_version(), VEGA_LITE, vl_convert.get_vega_embed_version())
    kept = cache_folder() / f"{'-'.join(parts)}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGA_LITE)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, script.encode())
    return script
