"""The built site as files: its pages, their links and anchors."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ATTRIBUTES = {"a": "href", "img": "src", "script": "src", "link": "href", "iframe": "src"}


@dataclass
class SitePage:
    """The links, resources and anchors of one page."""

    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = SitePage()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        for name in ("id", "name"):
            if anchor := about.get(name):
                self.page.anchors.add(anchor)
        target = about.get(_ATTRIBUTES.get(tag, ""))
        if target is not None:
            (self.page.links if tag == "a" else self.page.resources).append(target)


def read(folder: Path) -> dict[Path, SitePage]:
    """Returns the pages of a site by file."""
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        if file.name == "404.html":
            continue  # Addresses on this page start at the root of a server.
        reader = _Reader()
        reader.feed(file.read_text(encoding="utf-8"))
        pages[file] = reader.page
    return pages


def is_outside(target: str) -> bool:
    """Whether a link leads to another host."""
    parts = urlsplit(target)
    return bool(parts.scheme or parts.netloc)


def resolved(file: Path, target: str) -> tuple[Path, str]:
    """Returns the file and the anchor of a link on a page."""
    parts = urlsplit(target)
    return (file.parent / unquote(parts.path)).resolve() if parts.path else file, unquote(parts.fragment)


def clicks(pages: dict[Path, SitePage], start: Path) -> dict[Path, int]:
    """Returns the smallest number of clicks from a page to each page that links lead to."""
    found, frontier = {start: 0}, [start]
    while frontier:
        nearest: list[Path] = []
        for file in frontier:
            for target in pages[file].links:
                if is_outside(target):
                    continue
                to, _ = resolved(file, target)
                if to in pages and to not in found:
                    found[to] = found[file] + 1
                    nearest.append(to)
        frontier = nearest
    return found
