"""The built-in studies, and the lookup of a study by file or built-in name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from longfat.study.problems import Problem, StudyError
from longfat.study.vocabulary import nearest

ROOT = Path(__file__).resolve().parent.parent / "studies"
"""The folder of the built-in studies, with one folder per source."""


@cache
def builtin() -> dict[str, Path]:
    """Returns the files of the built-in studies by name (`arq/loss`)."""
    files = sorted(ROOT.resolve().glob("*/*.toml")) if ROOT.is_dir() else []
    return {f"{file.parent.name}/{file.stem}": file for file in files}


def find(text: str) -> Path:
    """Returns the file of a study given by path or built-in name; raises StudyError if there is none."""
    path = Path(text)
    if is_file(path):
        return path
    known = builtin()
    if text in known:
        return known[text]
    if is_folder(path):
        raise StudyError(text, [Problem("", "is a folder; give a study file (*.toml)")])
    if text.startswith("lesson="):
        raise StudyError(
            text, [Problem("", "is a scene of longfat explore; docs/learn has the study of the lesson")]
        )
    near = nearest(text, known)
    hint = f'did you mean "{near}"?' if near else "`longfat list studies` prints the built-in ones"
    raise StudyError(_shown(text), [Problem("", f"is neither a file nor a built-in study; {hint}")])


def is_file(path: Path) -> bool:
    """Returns whether a path names a file; false also for a name that no file system accepts."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Returns whether a path names a folder; false also for a name that no file system accepts."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _shown(text: str) -> str:
    """Returns a name on one line, shortened to 80 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


def name_of(path: Path) -> str:
    """Returns a study's name: its file's stem, for a built-in study with its folder."""
    resolved = path.resolve()
    for name, file in builtin().items():
        if file == resolved:
            return name
    return path.stem
