"""Messages about mistakes in a study: one line each, with file, key, value and what is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.study.vocabulary import allowed, unknown_key

MAX_SHOWN = 20
"""The number of problems that one error lists; further ones are counted."""


@dataclass(frozen=True)
class Problem:
    """One mistake: the dotted key (empty for the whole file) and the message."""

    key: str
    message: str


class StudyError(ValueError):
    """An invalid study. The text has one line per problem."""

    def __init__(
        self,
        origin: str,
        problems: Sequence[Problem],
        overridden: Mapping[str, str] | None = None,
        place_of: Callable[[str], str | None] | None = None,
    ) -> None:
        self.problems = tuple(grouped(problems))
        changed = overridden or {}
        shown = [_line(origin, problem, changed, place_of) for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            shown.append(f"{origin}: and {len(self.problems) - MAX_SHOWN} more problems")
        super().__init__("\n".join(shown))


def grouped(problems: Iterable[Problem]) -> list[Problem]:
    """Returns one problem per key, which lists all bad values of the same list.

    >>> grouped([Problem("k", '"a" is no rate'), Problem("k", '"b" is no rate'), Problem("k", "1 is odd")])
    [Problem(key='k', message='each of "a" and "b" is no rate; 1 is odd')]
    """
    by_key: dict[str, dict[tuple[str, str], list[str]]] = {}
    for problem in dict.fromkeys(problems):
        match = _VALUE.fullmatch(problem.message) if problem.key else None
        before, value, after = match.groups() if match else ("", "", problem.message)
        by_key.setdefault(problem.key, {}).setdefault((before, after), []).append(value)
    found = []
    for key, messages in by_key.items():
        texts = [_together(before, values, after) for (before, after), values in messages.items()]
        found += [Problem(key, "; ".join(texts))] if key else [Problem(key, text) for text in texts]
    return found


_VALUE = re.compile(r'(|[a-z ]+: [a-z ]*)("(?:[^"\\]|\\.)*"|`[^`]*`|-?[0-9.]+)(?=\W)(.*)', re.DOTALL)
"""A message that starts with the wrong value."""


def _together(before: str, values: Sequence[str], after: str) -> str:
    if len(values) == 1:
        return f"{before}{values[0]}{after}"
    listed = f"{', '.join(values[:-1])} and {values[-1]}"
    return f"{before}{listed}{after}" if before else f"each of {listed}{after}"


def _line(
    origin: str,
    problem: Problem,
    overridden: Mapping[str, str],
    place_of: Callable[[str], str | None] | None,
) -> str:
    where = (place_of(problem.key) if place_of is not None else None) or origin
    # The problem of a table can be caused by one of its keys, e.g. an unknown one.
    for key, option in overridden.items():
        if f"{problem.key}.".startswith(f"{key}.") or _within(problem.key, key):
            where = option
    text = ": ".join(part for part in (where, problem.key, problem.message) if part)
    # A value of the study can contain line breaks.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _within(table: str, key: str) -> bool:
    """Returns whether a dotted key is in a nested table; sections as a whole do not count."""
    return "." in table and key.startswith(f"{table}.")


def show(value: object) -> str:
    """Returns a value as a study file writes it, shortened to 60 characters.

    >>> show("2%"), show(True), show({"kind": "file"})
    ('"2%"', 'true', '{"kind": "file"}')
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def from_validation(errors: Sequence[Mapping[str, Any]], data: object) -> list[Problem]:
    """Returns problems from the errors of pydantic's ValidationError."""
    return [Problem(_key(error["loc"], data), _message(error)) for error in errors]


def _key(location: Sequence[str | int], data: object) -> str:
    """Returns a dotted key. Entries of lists are named by `id` or `name`, else by their number from 1."""
    key = ""
    for part in location:
        inner = data[part] if _has(data, part) else None  # type: ignore[index]
        if isinstance(part, int):
            label = inner.get("id", inner.get("name")) if isinstance(inner, dict) else None
            key += f"[{label if isinstance(label, str) else part + 1}]"
        else:
            key += f".{part}" if key else part
        data = inner
    return key


def _has(data: object, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(data, list) and part < len(data)
    return isinstance(data, dict) and part in data


_EXAMPLES = {
    "title": 'title = "Reno and CUBIC"',
    "workload": 'workload = { kind = "bulk", duration = "30s" }',
    "protocols": 'protocols = ["reno", "cubic"]',
}
"""Sections that a study needs."""
_KINDS = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def _message(error: Mapping[str, Any]) -> str:
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "extra_forbidden":
        name = str(error["loc"][-1])
        listed = allowed(name, error["known"])
        is_top = len(error["loc"]) == 1 and listed.startswith("allowed")
        return unknown_key(name, "", listed) if is_top else f"unknown key: {listed}"
    if kind == "missing":
        example = _EXAMPLES.get(".".join(map(str, error["loc"])))
        return f"is missing, e.g. {example}" if example else "is missing"
    if kind == "literal_error":
        known = [name.strip().strip("'") for name in context["expected"].replace(" or ", ", ").split(",")]
        meant = error.get("meant")
        hint = f'did you mean "{meant}"? allowed: {", ".join(known)}' if meant else allowed(str(value), known)
        return f"{show(value)} is not known; {hint}"
    if kind == "list_type" and isinstance(value, str):
        return f"{show(value)}: must be a list: [{show(value)}]"
    if kind in _KINDS:
        return f"{show(value)}: must be {_KINDS[kind]}"
    if kind == "greater_than_equal":
        return f"{show(value)} is too small: at least {context['ge']}"
    if kind == "less_than_equal":
        return f"{show(value)} is too large: at most {context['le']}"
    if kind == "string_pattern_mismatch":
        return f"{show(value)} is not a valid name: use letters, digits, - and _, a letter or digit first"
    if kind in ("too_short", "string_too_short"):
        return "is empty; at least one value is required"
    if kind == "value_error":
        return str(context["error"])
    return f"{show(value)}: {error['msg']}"
