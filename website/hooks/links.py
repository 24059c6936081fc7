"""Links of pages to files outside docs/: each such file becomes a page of the site.

Markdown files of the project's folder become pages, other files pages with their text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PROJECT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
_LINK = re.compile(r"\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".c": "c", ".h": "c"}


def slug(heading: str, separator: str) -> str:
    """Returns the anchor of a heading as GitHub forms it, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def place(file: str) -> str:
    """Returns the page of the site that shows a file of the project."""
    if file.startswith("docs/notebooks/") and file.endswith(".ipynb"):
        return file.removeprefix("docs/").removesuffix(".ipynb") + ".md"
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file in PROJECT_PAGES:
        return f"project/{file}"
    return "index.md" if file == "README.md" else f"source/{file.replace('/', '-')}.md"


def origin(page: str) -> str:
    """Returns the file of the project that a page of the site shows."""
    name = page.removeprefix("project/")
    return name if name != page and name in PROJECT_PAGES else f"docs/{page}"


def targets(text: str, file: str) -> set[str]:
    """Returns the existing files of the project that a Markdown text in `file` links to."""
    found = (os.path.normpath(Path(file).parent / match["target"]) for match in _LINK.finditer(text))
    return {name for name in found if not name.startswith("..") and (ROOT / name).exists()}


def moved(text: str, file: str, page: str) -> str:
    """Returns the text with links that lead to the pages of the site."""

    def one(match: re.Match[str]) -> str:
        name = os.path.normpath(Path(file).parent / match["target"])
        if not (ROOT / name).exists():
            return match[0]
        if name.startswith("docs/") and (ROOT / name).is_dir():
            name += "/README.md"
        to = os.path.relpath(place(name), PurePosixPath(page).parent)
        return f"]({to}{match['anchor'] or ''})"

    return _LINK.sub(one, text)


def _source_page(name: str) -> str:
    file = ROOT / name
    title = f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n"
    if file.is_dir():
        entries = sorted(p.relative_to(ROOT).as_posix() for p in file.rglob("*") if p.is_file())
        return title + "Files in this folder of the project:\n\n" + "".join(f"- `{e}`\n" for e in entries)
    language = _LANGUAGES.get(file.suffix, "text")
    return f"{title}````{language}\n{file.read_text(encoding='utf-8')}````\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Sets the anchors of headings."""
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages of the project's folder and of the files that pages link to."""
    for name in PROJECT_PAGES:
        content = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place(name), content=content))
    linked: set[str] = set()
    for file in files.documentation_pages():
        name = origin(file.src_uri)
        linked |= targets(file.content_string, name)
    for name in sorted(linked):
        page = place(name)
        if page.startswith("source/") and files.get_file_from_path(page) is None:
            content = _source_page(name)
            files.append(File.generated(config, page, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites links to files outside docs/."""
    del config, files
    if page.file.src_uri.startswith("source/"):
        return markdown
    return moved(markdown, origin(page.file.src_uri), page.file.src_uri)
