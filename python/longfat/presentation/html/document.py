"""Self-contained HTML documents with interactive charts."""

from __future__ import annotations

import json
import re

from longfat.presentation.charts.bundle import bundle
from longfat.presentation.charts.vega import Spec
from longfat.presentation.html.markup import Content, Markup, page_part, tag


def document(title: str, body: Content, *, wide: bool = False) -> str:
    """Returns an HTML document with its style and scripts, which opens without a network.

    A wide one is as wide as the screen.
    """
    return page_part(
        "report.html",
        title=f"{title} \N{EM DASH} longfat",
        style=page_part("report.css"),
        body=tag("main", body, class_="wide" if wide else None),
        vega=Markup(_inside_script(bundle())),
        script=page_part("report.js"),
    )


def figure(spec: Spec, name: str, *, title: str = "", caption: str = "", fit: int | None = None) -> Markup:
    """Returns a chart, which the script of the page draws from its specification.

    A drawing made here would serve readers without scripts only, and take a third of the time of a short run.
    The title of the page replaces that of the chart. With `fit`, the plots become as wide as the page without
    this margin in px.
    """
    spec = {key: value for key, value in spec.items() if key != "title"}
    # The page's background shows through in light and dark colours.
    spec["config"] = spec["config"] | {"background": "transparent"}
    name = f"chart-{name}"
    return tag(
        "figure",
        [
            tag("h3", title) if title else None,
            tag(
                "div",
                tag("noscript", "Charts need JavaScript."),
                class_="chart",
                data_chart=name,
                data_fit=fit,
            ),
            Markup(f'<script type="application/json" id="{name}">{_json(spec)}</script>'),
            tag("figcaption", caption) if caption else None,
        ],
    )


def _inside_script(text: str) -> str:
    """Escapes text so that no HTML parser ends the script early."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", "<\\!--")


def _json(spec: Spec) -> str:
    return _inside_script(json.dumps(spec, ensure_ascii=False, separators=(",", ":"))).replace("</", "<\\/")
