"""Notebooks as pages: their text and code, with a link to the file."""

from __future__ import annotations

import json
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def page_of(file: Path) -> str:
    """Returns the page of a notebook."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    parts = ["".join(c["source"]) if c["cell_type"] == "markdown" else _code(c["source"]) for c in cells]
    note = f'<a href="{file.name}" download>Download the notebook</a>. It is stored without outputs.'
    return "\n\n".join([parts[0], note, *parts[1:]]) + "\n"


def _code(lines: list[str]) -> str:
    return f"```python\n{''.join(lines)}\n```"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages of notebooks."""
    for file in sorted((Path(config.docs_dir) / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{file.stem}.md", content=page_of(file)))
    return files
