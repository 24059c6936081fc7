"""HTML from Python values: all text is escaped, except markup from this module."""

from __future__ import annotations

import html
import string
from collections.abc import Iterable, Sequence
from importlib.resources import files


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Content = str | Markup | Iterable["Content"] | None


def render(content: Content) -> Markup:
    """Renders content as HTML: escapes text, keeps markup, joins sequences and omits None.

    >>> render(["1 < 2", tag("b", "&")])
    '1 &lt; 2<b>&amp;</b>'
    """
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(html.escape(content))
    return Markup("".join(render(part) for part in content))


def tag(name: str, content: Content = None, **attributes: str | int | None) -> Markup:
    """Returns an element. `class_` is the attribute class, `data_chart` data-chart; None omits an attribute.

    >>> tag("td", "5 > 4", class_="edge")
    '<td class="edge">5 &gt; 4</td>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{render(content)}</{name}>")


def paragraph(text: Content, class_: str | None = None) -> Markup:
    """Returns a paragraph."""
    return tag("p", text, class_=class_)


def section(title: str, content: Content) -> Markup:
    """Returns a heading with its content; empty without content."""
    inner = render(content)
    return Markup("") if not inner else render([tag("h2", title), inner])


def table(heads: Sequence[Sequence[Markup]], rows: Iterable[Content]) -> Markup:
    """Returns a table with one or more heading rows, in a box that scrolls horizontally."""
    head = tag("thead", [tag("tr", cells) for cells in heads])
    return scrolling(tag("table", [head, tag("tbody", rows)]))


def scrolling(content: Content) -> Markup:
    """Returns content in a box that scrolls horizontally."""
    return tag("div", content, class_="scroll", tabindex=0)


def bullets(items: Iterable[Content], class_: str | None = None) -> Markup:
    """Returns a bullet list; empty without items."""
    made = [tag("li", item) for item in items]
    return tag("ul", made, class_=class_) if made else Markup("")


def folded(summary: Content, content: Content) -> Markup:
    """Returns content that is hidden until its summary is clicked."""
    return tag("details", [tag("summary", summary), content], class_="fold")


def facts(pairs: Iterable[tuple[str, Content]]) -> Markup:
    """Returns a list of names with their descriptions."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in pairs])


def page_part(name: str, **values: Content) -> Markup:
    """Returns a file of `parts` with `$name` replaced by the escaped values."""
    text = (files("longfat.presentation.html") / "parts" / name).read_text(encoding="utf-8")
    if not values:
        return Markup(text)
    return Markup(string.Template(text).substitute({key: render(value) for key, value in values.items()}))
