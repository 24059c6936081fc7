"""Path models: files that contain a path, measured or written by hand.

The file is TOML. `[path]` has the keys of a study's `[path]`, usually `hops`. `[measured]` documents the
measurement (host, time, intervals) and does not affect trials. `longfat run STUDY --set path=@FILE` and
`longfat shell --path FILE` use a model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longfat.study import lines
from longfat.study.relative_files import anchored_files
from longfat.study.vocabulary import allowed, check

TABLES = ("path", "measured")
"""The tables of a model's file."""
MARK = "@"
"""The prefix of a file name that replaces a path's table."""
MAX_FILE = 1_000_000
"""The largest model file, in bytes."""


@dataclass(frozen=True)
class PathModel:
    """A path as a study writes it, and data about its measurement."""

    path: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)


def read(file: str | Path) -> PathModel:
    """Reads a model. File names of traces in it refer to the model's folder.

    Raises:
        ValueError: one line with the file, the key and what is allowed.
    """
    name = Path(file)
    try:
        if name.stat().st_size > MAX_FILE:
            raise ValueError(f"{name}: is too large for a path model: at most {MAX_FILE} bytes")
        text = name.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ValueError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: is not text in UTF-8") from None
    except RecursionError:
        raise ValueError(f"{name}: is not TOML: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        line, reason = lines.of_syntax_error(text, error)
        raise ValueError(f"{name}:{line}: is not TOML: {reason}") from None

    def place(key: str) -> str:
        match = lines.find(text, key, data)
        return f"{name}:{match.line}" if match else str(name)

    for key in data:
        if key not in TABLES:
            raise ValueError(f"{place(key)}: {key}: unknown table: {allowed(key, TABLES)}")
    path, measured = data.get("path"), data.get("measured", {})
    if not isinstance(path, dict):
        raise ValueError(f"{name}: path: the table [path] is missing")
    if not isinstance(measured, dict):
        raise ValueError(f"{place('measured')}: measured: must be a table")
    _refuse(place, path)
    return PathModel(anchored_files(path, name.parent.resolve()), measured)


def write(file: str | Path, model: PathModel) -> None:
    """Writes a model; raises ValueError for an invalid path, OSError if the file cannot be written."""
    import tomli_w

    from longfat.system.files import write_whole

    _refuse(lambda _: str(file), model.path)
    tables = {"measured": model.measured} if model.measured else {}
    write_whole(Path(file), tomli_w.dumps({**tables, "path": model.path}).encode())


def swept(listed: Any, folder: Path) -> Any:
    """Returns the points of a sweep of whole paths with the models of `@FILE` points.

    Files are relative to `folder`. A point without a label is labelled by its file's name.

    Raises:
        ValueError: as `read`.
    """
    if not isinstance(listed, list):
        return listed
    return [_swept(point, folder) for point in listed]


def _swept(point: Any, folder: Path) -> Any:
    labelled = point if isinstance(point, dict) and isinstance(point.get("value"), str) else {"value": point}
    value = labelled["value"]
    if not (isinstance(value, str) and value.startswith(MARK)):
        return point
    file = folder / value.removeprefix(MARK)
    return {"label": file.stem, **labelled, "value": read(file).path}


def of_setting(value: Any) -> Any:
    """Returns the path of a setting: a table unchanged, or the path of the model in `@FILE`.

    >>> of_setting({"delay": "5ms"})
    {'delay': '5ms'}
    """
    if isinstance(value, str) and value.startswith(MARK):
        return read(value.removeprefix(MARK)).path
    if isinstance(value, dict):
        return value
    raise ValueError("has no key; write path.KEY=VALUE, or path=@FILE for a path model")


def _refuse(place: Callable[[str], str], path: dict[str, Any]) -> None:
    for key, message in check("path", path):
        raise ValueError(f"{place(key)}: {key}: {message}")
