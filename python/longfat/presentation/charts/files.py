"""Charts as files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import vl_convert

from longfat.presentation.charts.bundle import VEGA_LITE
from longfat.presentation.charts.size import PX_PER_INCH, UNITS

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Format, Spec

PNG_SCALE = 2.0
"""Pixels of a PNG per px of a chart without a size."""
PRINT_DPI = 300.0
"""Pixels per inch of a PNG of a chart with a size."""

_ROOT = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')


def render(spec: Spec, fmt: Format, width: float | None = None) -> bytes:
    """Returns a chart as a file. Needs no network.

    An SVG has 96 px per inch, and a PDF the same size. `width` in inches scales the whole chart, its text
    included, to this width; HTML is not scaled.

    Raises ValueError for an unknown format.
    """
    if fmt == "html":
        return vl_convert.vegalite_to_html(spec, vl_version=VEGA_LITE, bundle=True).encode()
    if fmt not in ("svg", "png", "pdf"):
        raise ValueError(f'unknown chart format "{fmt}"; allowed: svg, png, pdf, html')
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    across, down = size_of(svg)
    inches = across / PX_PER_INCH if width is None else width
    if fmt == "svg":
        drawn = svg if width is None else _resized(svg, f"{width:g}in", f"{width * down / across:.6g}in")
        return drawn.encode()
    if fmt == "png":
        if width is None:
            return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
        # The converter scales by the ratio of dots to 72 per inch, too.
        return bytes(vl_convert.svg_to_png(svg, scale=inches / (across * UNITS["pt"]), ppi=PRINT_DPI))
    # The unit of a PDF is a point.
    points = inches / UNITS["pt"]
    return bytes(vl_convert.svg_to_pdf(_resized(svg, f"{points:.6g}", f"{points * down / across:.6g}")))


def size_of(svg: str) -> tuple[float, float]:
    """Returns width and height of a drawing in px."""
    found = _ROOT.match(svg)
    if found is None:
        raise ValueError("the drawing has no size")
    return float(found[1]), float(found[2])


def _resized(svg: str, width: str, height: str) -> str:
    """Returns a drawing with another width and height; its view box stays."""
    found = _ROOT.match(svg)
    start = found[0].partition(' width="')[0] if found else ""
    end = found.end() if found else 0
    return f'{start} width="{width}" height="{height}"{svg[end:]}'
