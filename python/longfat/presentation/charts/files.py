"""Charts as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vl_convert

from longfat.presentation.charts.bundle import VEGA_LITE

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Format, Spec

PNG_SCALE = 2.0


def render(spec: Spec, fmt: Format) -> bytes:
    """Returns a chart as a file. Needs no network; a PNG has two pixels per px.

    Raises ValueError for an unknown format.
    """
    if fmt == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE).encode()
    if fmt == "png":
        return bytes(vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=PNG_SCALE))
    if fmt == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE))
    if fmt == "html":
        return vl_convert.vegalite_to_html(spec, vl_version=VEGA_LITE, bundle=True).encode()
    raise ValueError(f'unknown chart format "{fmt}"; allowed: svg, png, pdf, html')
