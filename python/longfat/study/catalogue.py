"""The built-in studies, and how a study is found: by its file's path or by its built-in name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from longfat.study.problems import Problem, StudyError
from longfat.study.vocabulary import nearest

ROOT = Path(__file__).resolve().parent.parent / "studies"
"""Where the built-in studies lie, one folder a source."""


@cache
def builtin() -> dict[str, Path]:
    """The built-in studies: name (`arq/loss`) to file."""
    files = sorted(ROOT.resolve().glob("*/*.toml")) if ROOT.is_dir() else []
    return {f"{file.parent.name}/{file.stem}": file for file in files}


def find(text: str) -> Path:
    """The file of a study given by path or built-in name; StudyError where there is none."""
    path = Path(text)
    if path.is_file():
        return path
    known = builtin()
    if text in known:
        return known[text]
    if path.is_dir():
        raise StudyError(text, [Problem("", "is a folder: name a study file (*.toml) in it")])
    near = nearest(text, known)
    hint = f'did you mean "{near}"?' if near else "`longfat list studies` shows the built-in ones"
    raise StudyError(text, [Problem("", f"no such study: neither a file nor a built-in name; {hint}")])


def name_of(path: Path) -> str:
    """A study's name: its file's stem; of a built-in study, with its folder."""
    resolved = path.resolve()
    for name, file in builtin().items():
        if file == resolved:
            return name
    return path.stem
