"""The explorer in the site, if `make explorer` has built it: its files, and a link in each lesson."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

BUILT = Path(__file__).resolve().parents[2] / "target" / "explorer"
_LESSON = re.compile(r"learn/(\d+)-[\w-]+\.md")
_LINKS = {"explorer.md": "explorer/index.html", "qlog.md": "explorer/log.html"}
"""Pages with a link to the explorer, besides the lessons."""


def link(page: str) -> str | None:
    """Returns the address of the explorer for a page of the site, or None if it has no link."""
    if lesson := _LESSON.fullmatch(page):
        return f"../explorer/index.html?lesson={lesson[1]}"
    return _LINKS.get(page)


def is_built() -> bool:
    """Returns whether there is an explorer that works without a server."""
    simulator = BUILT / "simulator.js"
    return simulator.is_file() and b"LONGFAT_SIMULATOR" in simulator.read_bytes()[:64]


def on_page_content(html: str, *, page: Page, **_: Any) -> str:
    """Adds the link below the title."""
    address = link(page.file.src_uri)
    if address is None or not is_built():
        return html
    paragraph = f'<p><a class="md-button" href="{address}">Open in the explorer</a></p>'
    return html.replace("</h1>", f"</h1>\n{paragraph}", 1)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Copies the explorer."""
    if is_built():
        shutil.copytree(BUILT, Path(config.site_dir) / "explorer", dirs_exist_ok=True)
