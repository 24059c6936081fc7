"""Blocks of pages: the marks of tests become titles or disappear, and diagrams of layers become tables."""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_MARKED = re.compile(r"^<!-- (?P<mark>[a-z]+)(?:: (?P<about>[^\n]*?))? -->\n```(?P<kind>\w+)\n", re.MULTILINE)
_DIAGRAM = re.compile(r"^```mermaid\n(?P<text>.*?)^```\n", re.DOTALL | re.MULTILINE)
_NODE = re.compile(r'^\s*(?P<id>\w+)\["(?P<name>.*?) — (?P<about>.*?)"\]$', re.MULTILINE)
_EDGE = re.compile(r"^\s*(?P<upper>\w+) --> (?P<lower>\w+)$", re.MULTILINE)


def _titled(match: re.Match[str]) -> str:
    if match["mark"] in ("file", "append"):
        more = "" if match["mark"] == "file" else " (append)"
        return f'```{match["kind"]} title="{match["about"]}{more}"\n'
    return f"```{match['kind']}\n"


def layers(match: re.Match[str]) -> str:
    """Returns a table of a diagram's layers, which a phone can show and which needs no script."""
    text = match["text"]
    names = {node["id"]: node["name"] for node in _NODE.finditer(text)}
    uses: dict[str, list[str]] = {key: [] for key in names}
    for edge in _EDGE.finditer(text):
        uses[edge["upper"]].append(f"`{names[edge['lower']]}`")
    lines = ["| layer | contents | uses |", "| --- | --- | --- |"]
    lines += [
        f"| `{node['name']}` | {node['about']} | {', '.join(uses[node['id']])} |"
        for node in _NODE.finditer(text)
    ]
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the blocks of a page."""
    del page, config, files
    return _MARKED.sub(_titled, _DIAGRAM.sub(layers, markdown))
