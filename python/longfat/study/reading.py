"""Reads a study's tables from a file, a mapping or a study, before they are checked."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.study import catalogue, lines, path_model, sweep
from longfat.study.extending import KEY, extended
from longfat.study.nesting import check_depth
from longfat.study.plain import study_tables, with_entries
from longfat.study.problems import Problem, StudyError
from longfat.study.relative_files import anchored_files
from longfat.study.specification import Study

MAX_FILE = 4_000_000
"""The largest study file, in bytes."""


@dataclass(frozen=True)
class _File:
    """A study file as written, without what it extends."""

    path: Path
    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Source:
    """An unchecked study.

    `origin` names it in messages, `text` is its TOML (empty for a mapping), `data` its tables. `files` are
    the study's file and the files that it extends.
    """

    origin: str
    name: str
    text: str
    data: dict[str, Any]
    files: tuple[_File, ...] = ()

    def place_of(self, key: str) -> str | None:
        """Returns the file and line of a key. If several files contain the key, the first one counts."""
        found = [
            (match.depth, -number, f"{file.path}:{match.line}")
            for number, file in enumerate(self.files)
            if (match := lines.find(file.text, key, file.data)) is not None
        ]
        return max(found)[2] if found else None


def read_study(source: str | Path | Mapping[str, Any] | Study) -> Source:
    """Reads a study and the studies that it extends.

    File names in it become absolute, and swept path models are read.

    Raises:
        StudyError: for a file that cannot be read, and for a wrong `extends`.
    """
    if isinstance(source, Study):
        data = source.model_dump(mode="python", exclude_unset=True, by_alias=True)
        return Source(source.name, source.name, source.text, data)
    files: list[_File] = []
    read = _collector(files)
    if isinstance(source, Mapping):
        try:
            check_depth(source)
            data = study_tables(source)
            _read_models(data, Path.cwd())
            data = extended(data, Path.cwd() / "study", read)
        except ValueError as error:
            raise _as_study_error("study", error) from None
        return Source("study", _slug(data.get("title")), "", data, tuple(files))
    path = catalogue.find(str(source))
    own = read(path)
    try:
        data = extended(own, path, read)
    except ValueError as error:
        raise _as_study_error(_place(files[0], KEY), error) from None
    text = files[0].text if data == with_entries(files[0].data) else write_toml(data)
    return Source(str(path), catalogue.name_of(path), text, data, tuple(files))


def write_toml(data: Mapping[str, Any]) -> str:
    """Returns a study's tables as TOML."""
    import tomli_w

    return tomli_w.dumps(data)


def anchor_files(data: dict[str, Any], folder: Path) -> None:
    """Makes file names in a study's tables absolute and reads swept path models, in place.

    Raises:
        ValueError: for a model that cannot be read.
    """
    for table in ("path", "topology", "workload", "protocols", "traffic", "sweep"):
        if isinstance(data.get(table), dict | list):
            data[table] = anchored_files(data[table], folder)
    _read_models(data, folder)


def _collector(files: list[_File]) -> Callable[[Path], dict[str, Any]]:
    """Returns a function that reads a study file's tables and appends the file to `files`."""

    def read(path: Path) -> dict[str, Any]:
        file = _read_file(path)
        files.append(file)
        data = with_entries(copy.deepcopy(file.data))
        try:
            anchor_files(data, path.parent.resolve())
        except ValueError as error:
            raise StudyError(str(path), [Problem("", str(error))]) from None
        return data

    return read


def _read_file(path: Path) -> _File:
    origin = str(path)
    try:
        if path.stat().st_size > MAX_FILE:
            raise ValueError(f"is too large for a study file: at most {MAX_FILE} bytes")  # noqa: TRY301
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
        check_depth(data, "is not a study: ")
        return _File(path, text, data)
    except OSError as error:
        raise StudyError(origin, [Problem("", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise StudyError(origin, [Problem("", "is not text in UTF-8")]) from None
    except RecursionError:
        raise StudyError(origin, [Problem("", "is not TOML: nested too deeply")]) from None
    except tomllib.TOMLDecodeError as error:
        line, reason = lines.of_syntax_error(text, error)
        raise StudyError(f"{origin}:{line}", [Problem("", f"is not TOML: {reason}")]) from None
    except ValueError as error:
        raise StudyError(origin, [Problem("", str(error))]) from None


def _read_models(data: dict[str, Any], folder: Path) -> None:
    """Replaces the file names of path models in a sweep of whole paths by their paths."""
    swept = data.get("sweep")
    if not isinstance(swept, dict) or sweep.PATH not in swept:
        return
    try:
        data["sweep"] = swept | {sweep.PATH: path_model.swept(swept[sweep.PATH], folder)}
    except ValueError as error:
        raise ValueError(f'sweep."{sweep.PATH}": {error}') from None


def _place(file: _File, key: str) -> str:
    match = lines.find(file.text, key, file.data)
    return f"{file.path}:{match.line}" if match else str(file.path)


def _as_study_error(origin: str, error: ValueError) -> StudyError:
    return error if isinstance(error, StudyError) else StudyError(origin, [Problem("", str(error))])


def _slug(title: object) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") if isinstance(title, str) else ""
    return slug[:60].rstrip("-") or "study"
