"""Whether a font is installed on this machine."""

from __future__ import annotations

from html import escape

import vl_convert

from longfat.presentation.charts.vega import Format
from longfat.system.parameters import ParameterError


def require_installed(font: str, fmt: Format) -> None:
    """Raises ParameterError if a PDF or PNG needs a font that is not installed.

    SVG and HTML contain the font's name only, and the viewer's machine draws the text.
    """
    if fmt in ("pdf", "png") and not is_installed(font):
        raise ParameterError(
            "font",
            f'"{font}" is not installed on this machine, and {fmt} needs it; '
            "allowed: installed fonts, serif, sans-serif, monospace",
        )


def is_installed(font: str) -> bool:
    """Returns whether text in a font family, or in the first installed one of a list, is drawn at all."""
    return _drawn(font) != _drawn("")


def _drawn(font: str) -> bytes:
    text = f'<text y="20" font-family="{escape(font)}">Hg</text>' if font else ""
    return bytes(
        vl_convert.svg_to_png(f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="30">{text}</svg>')
    )
