"""Lessons in the site: questions become forms that check answers, and scenes become the running explorer.

`<!-- ask: QUESTION | VALUE ±TOLERANCE | LOWEST HIGHEST | EXPLANATION -->` asks for a number;
`<!-- scene: lesson=5 -->` shows a scene.
In plain Markdown both are invisible, and the sentence above them names the scene.
"""

from __future__ import annotations

import html
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from explorer import is_built

ASK = re.compile(
    r"^[ ]*<!-- ask: (?P<question>[^|]*) \| (?P<value>\S+) ±(?P<close>\S+) \| (?P<low>\S+) (?P<high>\S+) \| "
    r"(?P<why>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
SCENE = re.compile(r"^<!-- scene: lesson=(?P<lesson>\d+) -->$", re.MULTILINE)


def form(match: re.Match[str], number: int) -> str:
    """Returns the form of a question."""
    question, value, close, low, high, why = (html.escape(" ".join(one.split())) for one in match.groups())
    data = f'data-value="{value}" data-close="{close}" data-low="{low}" data-high="{high}" data-why="{why}"'
    name = f"question-{number}"
    # Without blank lines, Markdown keeps it as one block of HTML, also inside of a list.
    return (
        f'\n<form class="question" {data}><label for="{name}">{question}</label> '
        f'<input id="{name}" inputmode="decimal" autocomplete="off" size="8"> '
        f'<button class="md-button">Check</button> <output for="{name}"></output></form>\n'
    )


def scene(match: re.Match[str], to_root: str) -> str:
    """Returns the running explorer; empty if it is not built."""
    if not is_built():
        return ""
    address = f"{to_root}explorer/index.html?lesson={match['lesson']}"
    # The scene of the start page runs; those of lessons wait for the prediction.
    mode = "embed" if to_root else "embed&amp;play"
    return (
        f'\n<figure class="scene"><iframe src="{address}&amp;{mode}" loading="lazy" '
        f'title="Running scene of lesson {match["lesson"]}"></iframe>'
        f'<figcaption><a href="{address}">Open with all settings</a></figcaption></figure>\n'
    )


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the questions and scenes of a lesson."""
    del config, files
    to_root = "../" * page.file.src_uri.count("/")
    numbers = itertools.count(1)
    asked: Callable[[re.Match[str]], str] = lambda match: form(match, next(numbers))  # noqa: E731
    return SCENE.sub(lambda match: scene(match, to_root), ASK.sub(asked, markdown))
