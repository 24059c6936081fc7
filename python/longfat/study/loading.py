"""Loads a study and checks it completely before the first trial."""

from __future__ import annotations

import copy
import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from longfat import _native
from longfat.study import quick, sweep
from longfat.study.claims import Claim, meant
from longfat.study.combinations import KEPT, Point, Points
from longfat.study.expressions.dimension import ExpressionError
from longfat.study.expressions.metrics import derived_metrics
from longfat.study.expressions.settings import SettingError, resolved
from longfat.study.keys import lookup
from longfat.study.naming import claim_problems
from longfat.study.overrides import Overrides
from longfat.study.problems import Problem, StudyError, from_validation, show
from longfat.study.reading import Source, anchor_files, read_study, write_toml
from longfat.study.section_texts import SectionTexts
from longfat.study.specification import ProtocolEntry, Reported, Study, TrafficEntry
from longfat.study.support import world_problems
from longfat.study.vocabulary import check, protocol_kinds


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
        overrides: Changes before the checks.
        name: The study's name; default: from its file or title.
        checked: Whether the source has run before. Then only the top-level keys are checked: an override can
            leave claims about keys that are no longer swept, and later versions can have other keys.
        also: A further check of the claims as written, from a higher layer
            (`longfat.analysis.expectation.theory_problems`).

    Raises:
        StudyError: (a ValueError) with one line per problem: file, key, value and what is allowed.
    """
    overrides = overrides or Overrides()
    read = read_study(source)
    origin, text, data = read.origin, read.text, read.data
    original = _parse(read, data, {})
    touched: dict[str, str] = {}
    study, changed = original, copy.deepcopy(data)
    if overrides.any:
        try:
            touched = overrides.apply(changed)
            anchor_files(changed, Path.cwd())
        except ValueError as error:
            raise StudyError("", [Problem("", str(error))]) from None
        study = _parse(read, changed, touched)
        text = write_toml(changed)
    cuts: list[str] = []
    found: list[Problem] = []
    if not checked and not isinstance(source, Study):
        # Checks the study as written: a claim is undecided if --set narrows a sweep.
        found += claim_problems(original) or (also(original) if also is not None else [])
    if not checked:
        found += _section_problems(study) or world_problems(study)
    if found:
        raise StudyError(origin, found, touched, read.place_of)
    if overrides.quick:
        given = [key for key, _ in overrides.settings]
        changed, cuts = quick.cut(changed, lambda data: _parse(read, data, touched), given, overrides.repeats)
        study, text = _parse(read, changed, touched), write_toml(changed)
    return study.with_provenance(
        name=name or read.name,
        text=text or write_toml(data),
        cuts=tuple(cuts),
        dropped_sweeps=tuple(overrides.dropped_sweeps(data)),
        variant=overrides.variant,
        is_quick=overrides.quick,
    )


def _parse(read: Source, data: dict[str, Any], touched: Mapping[str, str]) -> Study:
    found = _unwritable(data, "")
    if found:
        raise StudyError(read.origin, found, touched, read.place_of)
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        errors = [
            {**entry, "known": _known(entry["loc"]), "meant": _meant(entry["loc"], data)}
            for entry in error.errors(include_url=False)
        ]
        raise StudyError(read.origin, from_validation(errors, data), touched, read.place_of) from None
    found = [
        *_name_problems(study),
        *_label_problems(study),
        *_metric_problems(study),
        *_claim_problems(study),
        *sweep.problems(study),
    ]
    if found:
        raise StudyError(read.origin, found, touched, read.place_of)
    return study


def _meant(location: tuple[str | int, ...], data: dict[str, Any]) -> str | None:
    """Returns the relation that a wrong relation of a claim probably means."""
    match location:
        case ("claims", int(number), "relation"):
            claim = data["claims"][number]
            return meant(claim["relation"], claim.get("metric")) if "relation" in claim else None
    return None


def _known(location: tuple[str | int, ...]) -> list[str]:
    """Returns the known keys of the table with an unknown key."""
    models: dict[str, type[BaseModel]] = {
        "claims": Claim,
        "reported": Reported,
        "protocols": ProtocolEntry,
        "traffic": TrafficEntry,
    }
    model = models.get(str(location[0]), Study) if len(location) > 1 else Study
    return list(model.model_fields)


def _unwritable(value: object, key: str) -> list[Problem]:
    """Returns problems of values that TOML allows and a study does not: dates, NaN, infinity."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in _unwritable(v, f"{key}.{k}" if key else str(k))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value, 1) for p in _unwritable(v, f"{key}[{i}]")]
    if isinstance(value, datetime.date | datetime.time):
        return [
            Problem(
                key, f"{value}: a date or time is not a study value; write a duration as text with its unit"
            )
        ]
    if isinstance(value, float) and not math.isfinite(value):
        return [Problem(key, f"{value} is not a study value")]
    if value is None or not isinstance(value, str | int | float):
        return [Problem(key, f"{show(value)} is not a study value")]
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


def _label_problems(study: Study) -> list[Problem]:
    """Returns labels of protocols that are the name of another protocol, or the label of an earlier one."""
    taken = {entry.name: f"the name of {entry.name}" for entry in study.protocols}
    found = []
    for entry in study.protocols:
        if entry.label in taken and entry.label != entry.name:
            message = f'"{entry.label}" is also {taken[entry.label]}; labels must be unique'
            found.append(Problem(f"protocols[{entry.name}].label", message))
        taken.setdefault(entry.label, f"the label of {entry.name}")
        taken.pop("", None)
    return found


def _metric_problems(study: Study) -> list[Problem]:
    try:
        derived_metrics(study.metrics)
    except ExpressionError as error:
        name, _, message = str(error).partition(": ")
        return [Problem(f"metrics.{name}", message)]
    return []


def _claim_problems(study: Study) -> list[Problem]:
    """Returns the claims without a metric or a protocol that have no default."""
    return [
        Problem(f"claims[{claim.id}].{key}", f"is missing; {default}")
        for claim in study.claims
        for key, default in (
            ("metric", "the default is the first metric of show, which the study does not have"),
            ("of", f"the study has several protocols: {', '.join(one.name for one in study.protocols)}"),
        )
        if not getattr(claim, key)
    ]


def _section_problems(study: Study) -> list[Problem]:
    """Returns the native module's problems with the sections of all trials, in the order of the cells."""
    placed: list[tuple[int, int, Problem]] = []
    for column, entry in enumerate(study.protocols):
        points = sweep.points_of(study, entry)
        for name, number in _wrong_sections(points):
            at = points.first_with(name, number)
            placed += [(at, column, one) for one in _problems_at(points[at], name, entry.name)]
    found = [problem for _, _, problem in sorted(placed, key=itemgetter(0, 1))]
    # Also check values that every cell overrides.
    for entry in study.protocols:
        try:
            base = resolved(sweep.specification(study, entry), entry.name).spec
        except SettingError:
            continue  # an expression needs a swept key
        for key, message in chain.from_iterable(starmap(_check_section, base.items())):
            value = lookup(base, key.split("."))
            if value is not None and not isinstance(value, Mapping):
                found.append(Problem(_label(key, entry.name), message + _kinds(key, entry.name, base)))
    return list(dict.fromkeys(found))


def _wrong_sections(points: Points) -> Iterator[tuple[str, int]]:
    """Yields the sections of points that have problems, each content once: the name and its number.

    Of one section, it yields at most `KEPT`, since no message lists more values.
    """
    texts = SectionTexts(points)
    for name, grid in points.grids.items():
        wrong: list[int] = []
        if name == "links":
            continue
        for start in range(0, len(grid), KEPT):
            some = range(start, min(start + KEPT, len(grid)))
            contents = [texts.of(name, number) for number in some]
            wrong += [some[at] for at in _native.wrong_contents(name, contents)]
            if len(wrong) >= KEPT:
                break
        yield from ((name, number) for number in wrong[:KEPT])


def _problems_at(point: Point, name: str, protocol: str) -> Iterator[Problem]:
    """Yields the problems of one section at a point, with the keys as the study writes them."""
    own = {sweep.own_key(part, protocol): key for key in point.params for part in sweep.parts(key)}
    for key, wrong in _check_section(name, point.spec[name]):
        message = f'{wrong} (the value of "{point.computed[key][0]}")' if key in point.computed else wrong
        swept = next((k for k in own if key == k or key.startswith(f"{k}.")), None)
        if swept is None:
            yield Problem(_label(key, protocol), message + _kinds(key, protocol, point.spec))
            continue
        # A key inside a swept table, or one of several that move together.
        inner = key if own[swept] != swept and sweep.TOGETHER in own[swept] else key.removeprefix(swept)
        inner = inner.removeprefix(".")
        yield Problem(f'sweep."{own[swept]}"', f"{inner}: {message}" if inner else message)


def _check_section(section: str, settings: Any) -> list[tuple[str, str]]:
    if section != "traffic":
        return list(check(section, settings))  # type: ignore[arg-type]
    return [
        (f"traffic.{flow['name']}{key.removeprefix('traffic')}", message)
        for flow in settings
        for key, message in check("traffic", flow)
    ]


def _kinds(key: str, protocol: str, spec: Mapping[str, Any]) -> str:
    """Returns the kinds of protocols for a protocol given by a name that is no controller; else nothing.

    >>> _kinds("protocol.congestion", "gbn", {"protocol": {"kind": "tcp", "congestion": "gbn"}})[:32]
    '; kinds of protocols: tcp, mptcp'
    """
    if key != "protocol.congestion" or spec["protocol"].get("congestion") != protocol:
        return ""
    return f"; kinds of protocols: {', '.join(protocol_kinds())}"


def _label(key: str, protocol: str) -> str:
    root, _, rest = key.partition(".")
    return f"protocols.{protocol}.{rest}".rstrip(".") if root == "protocol" else key
