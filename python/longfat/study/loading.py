"""From a study file to a checked study: every mistake is found before the first trial runs."""

from __future__ import annotations

import copy
import datetime
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from longfat.keys import lookup
from longfat.named_classes import CLASS_KEYS, anchored, is_class
from longfat.study import catalogue, lines, path_model, quick, sweep
from longfat.study.claims import Claim, meant
from longfat.study.naming import claim_problems
from longfat.study.overrides import Overrides
from longfat.study.plain import study_tables
from longfat.study.problems import Problem, StudyError, from_validation, show
from longfat.study.specification import ProtocolEntry, Reported, Study, TrafficEntry
from longfat.study.support import world_problems
from longfat.study.vocabulary import check

TRACE = "trace"
"""The key of a link that names a file; a relative name is meant from the study file's folder."""
MAX_FILE = 4_000_000
"""A study file is at most this many bytes."""


def load_study(
    source: str | Path | Mapping[str, Any] | Study,
    overrides: Overrides | None = None,
    *,
    name: str | None = None,
    checked: bool = False,
    also: Callable[[Study], list[Problem]] | None = None,
) -> Study:
    """Reads and checks a study.

    Args:
        source: A file's path, a built-in study's name (`arq/loss`), a study file's tables, or a `Study`.
            Tables may hold what `longfat.study.plain` converts.
        overrides: What to change before it is checked.
        name: The study's name, where it is not to follow from its file or title.
        checked: Whether the source has been run already: then its skeleton alone is checked again, since a
            sweep narrowed by an override leaves claims about what is swept no more, and later versions know
            other keys.
        also: A further check of the claims as written, by a package above this one
            (`longfat.analysis.expectation.theory_problems`).

    Raises:
        StudyError: (a ValueError) with one line a problem, naming file, key, value and what is allowed.
    """
    overrides = overrides or Overrides()
    read = _read(source)
    origin, text, data = read.origin, read.text, read.data
    original = _parse(read, data, ())
    touched: list[str] = []
    study, changed = original, copy.deepcopy(data)
    if overrides.any:
        try:
            touched = overrides.apply(changed)
            _anchor_files(changed, Path.cwd())
        except ValueError as error:
            raise StudyError("", [Problem("", str(error))]) from None
        study = _parse(read, changed, touched, overrides.label)
        text = _write(changed)
    found: list[Problem] = []
    if not checked and not isinstance(source, Study):
        # Against the file as its author wrote it: where --set narrows a sweep, a claim is undecided.
        found += claim_problems(original) or (also(original) if also is not None else [])
    if not checked:
        found += _section_problems(study) or world_problems(study)
    if found:
        raise StudyError(origin, found, touched, read.line_of, overrides.label)
    if overrides.quick:
        given = [key for key, _ in overrides.settings]
        changed, cuts = quick.cut(
            changed, lambda data: _parse(read, data, touched, overrides.label), given, overrides.repeats
        )
        study, text = _parse(read, changed, touched, overrides.label), _write(changed)
        study._cuts = cuts
    study._name = name or read.name
    study._text = text or _write(data)
    study._dropped_sweeps = overrides.dropped_sweeps(data)
    return study


@dataclass(frozen=True)
class _Source:
    """A study before it is checked: its origin in messages, name, text, tables, and the text of its file."""

    origin: str
    name: str
    text: str
    data: dict[str, Any]
    written: str = ""

    def line_of(self, key: str) -> int | None:
        """The line of a key in the study's file; None where there is no file."""
        return lines.line_of(self.written, key, self.data) if self.written else None


def _read(source: str | Path | Mapping[str, Any] | Study) -> _Source:
    if isinstance(source, Study):
        data = source.model_dump(mode="python", exclude_unset=True, by_alias=True)
        return _Source(source.name, source.name, source.text, data)
    if isinstance(source, Mapping):
        data = study_tables(source)
        try:
            _read_models(data, Path.cwd())
        except ValueError as error:
            raise StudyError("study", [Problem("", str(error))]) from None
        return _Source("study", _slug(data.get("title")), "", data)
    path = catalogue.find(str(source))
    origin = str(path)
    try:
        if path.stat().st_size > MAX_FILE:
            raise StudyError(
                origin, [Problem("", f"is too large for a study file: at most {MAX_FILE} bytes")]
            )
        written = path.read_text(encoding="utf-8")
        data = tomllib.loads(written)
    except OSError as error:
        raise StudyError(origin, [Problem("", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise StudyError(origin, [Problem("", "is not text in UTF-8")]) from None
    except RecursionError:
        raise StudyError(origin, [Problem("", "is not TOML: nested too deeply")]) from None
    except tomllib.TOMLDecodeError as error:
        line, reason = lines.of_syntax_error(written, error)
        raise StudyError(f"{origin}:{line}", [Problem("", f"is not TOML: {reason}")]) from None
    try:
        text = _write(data) if _anchor_files(data, path.parent.resolve()) else written
    except ValueError as error:
        raise StudyError(origin, [Problem("", str(error))]) from None
    return _Source(origin, catalogue.name_of(path), text, data, written)


def anchored_files(value: Any, folder: Path, key: str = "") -> Any:
    """A value with the names of traces and of controllers' files in it made absolute, as from a folder."""
    if isinstance(value, list):
        return [anchored_files(entry, folder, key) for entry in value]
    if isinstance(value, dict):
        return {
            inner: anchored_files(entry, folder, inner.rpartition(".")[2]) for inner, entry in value.items()
        }
    if key == TRACE and isinstance(value, str):
        return str(folder / value)
    return anchored(value, folder) if key in CLASS_KEYS and is_class(value) else value


def _anchor_files(data: dict[str, Any], folder: Path) -> bool:
    """Makes the names of files in a study's tables absolute, and reads models that it sweeps, in place.

    Whether anything changed. Raises ValueError for a model that cannot be read.
    """
    changed = False
    for table in ("path", "topology", "protocols", "traffic", "sweep"):
        before = data.get(table)
        if isinstance(before, dict | list):
            data[table] = anchored_files(before, folder)
            changed |= data[table] != before
    return _read_models(data, folder) or changed


def _read_models(data: dict[str, Any], folder: Path) -> bool:
    """Puts models in place of their files' names in a sweep of whole paths; whether there was any."""
    swept = data.get("sweep")
    if not isinstance(swept, dict) or sweep.PATH not in swept:
        return False
    before = swept[sweep.PATH]
    try:
        swept[sweep.PATH] = path_model.swept(before, folder)
    except ValueError as error:
        raise ValueError(f'sweep."{sweep.PATH}": {error}') from None
    return bool(swept[sweep.PATH] != before)


def _slug(title: object) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") if isinstance(title, str) else ""
    return words[:60].rstrip("-") or "study"


def _parse(read: _Source, data: dict[str, Any], touched: Sequence[str], label: str = "") -> Study:
    found = _unwritable(data, "")
    if found:
        raise StudyError(read.origin, found, touched, read.line_of, label)
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        errors = [
            {**entry, "known": _known(entry["loc"]), "meant": _meant(entry["loc"], data)}
            for entry in error.errors(include_url=False)
        ]
        raise StudyError(read.origin, from_validation(errors, data), touched, read.line_of, label) from None
    found = [*_name_problems(study), *sweep.problems(study)]
    if found:
        raise StudyError(read.origin, found, touched, read.line_of, label)
    return study


def _meant(location: tuple[str | int, ...], data: dict[str, Any]) -> str | None:
    """The relation that a claim's wrong word stands for."""
    match location:
        case ("claims", int(number), "relation"):
            claim = data["claims"][number]
            return meant(claim["relation"], claim.get("metric"))
    return None


def _known(location: tuple[str | int, ...]) -> list[str]:
    """The keys that are known where an unknown one was found: the skeleton nests one level of lists."""
    models: dict[str, type[BaseModel]] = {
        "claims": Claim,
        "reported": Reported,
        "protocols": ProtocolEntry,
        "traffic": TrafficEntry,
    }
    model = models.get(str(location[0]), Study) if len(location) > 1 else Study
    return list(model.model_fields)


def _unwritable(value: object, key: str) -> list[Problem]:
    """Values that TOML knows and a study does not: dates, NaN, infinity."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in _unwritable(v, f"{key}.{k}" if key else str(k))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value, 1) for p in _unwritable(v, f"{key}[{i}]")]
    if isinstance(value, datetime.date | datetime.time):
        return [
            Problem(key, f"{value}: a date or time is no value of a study; a duration is text with its unit")
        ]
    if isinstance(value, float) and not math.isfinite(value):
        return [Problem(key, f"{value} is no value of a study")]
    if value is None or not isinstance(value, str | int | float):
        return [Problem(key, f"{show(value)} is no value of a study")]
    return []


def _name_problems(study: Study) -> list[Problem]:
    lists: dict[str, tuple[str, Sequence[ProtocolEntry | TrafficEntry]]] = {
        "protocols": ("protocols", study.protocols),
        "traffic": ("entries", study.traffic),
    }
    return [
        Problem(f"{key}[{name}].name", f'{count} {what} are named "{name}"; names must be unique')
        for key, (what, entries) in lists.items()
        for name, count in Counter(entry.name for entry in entries).items()
        if count > 1
    ]


def _section_problems(study: Study) -> list[Problem]:
    """What the native part says of every section that a trial would be run with."""
    found: list[Problem] = []
    for cell in sweep.cells(study):
        own = {sweep.own_key(key, cell.protocol): key for key in cell.params}
        for key, message in _check_all(cell.spec):
            swept = next((k for k in own if key == k or key.startswith(f"{k}.")), None)
            if swept is None:
                found.append(Problem(_label(key, cell.protocol), message))
                continue
            # A key inside a table that is swept.
            inner = key.removeprefix(swept).removeprefix(".")
            found.append(Problem(f'sweep."{own[swept]}"', f"{inner}: {message}" if inner else message))
    # A value that every cell overrides would otherwise be accepted unread.
    for entry in study.protocols:
        base = sweep.specification(study, entry)
        for key, message in _check_all(base):
            value = lookup(base, key.split("."))
            if value is not None and not isinstance(value, Mapping):
                found.append(Problem(_label(key, entry.name), message))
    return list(dict.fromkeys(found))


def _check_all(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The problems of a trial specification's sections, as (dotted key, message)."""
    for section, settings in spec.items():
        if section == "traffic":
            for flow in settings:
                for key, message in check("traffic", flow):
                    yield f"traffic.{flow['name']}{key.removeprefix('traffic')}", message
        else:
            yield from check(section, settings)  # type: ignore[arg-type]


def _label(key: str, protocol: str) -> str:
    root, _, rest = key.partition(".")
    return f"protocols.{protocol}.{rest}".rstrip(".") if root == "protocol" else key


def _write(data: Mapping[str, Any]) -> str:
    import tomli_w

    return tomli_w.dumps(data)
