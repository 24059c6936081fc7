"""Line numbers of keys in a TOML file, which `tomllib` does not report.

The text is cut into statements (a header, or a key with its value), each of which `tomllib` reads by itself.
So there is no second parser: a statement is whole as soon as it is TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from longfat.study.claim_tables import EACH, members

Place = tuple[str | int, ...]
"""The place of a value: names of tables and keys, and positions in lists from 0."""

LONGEST = 400
"""Statements with more lines than this are skipped."""

_PART = re.compile(r'"([^"]*)"|\[([^\]]*)\]|([^.\[\]"]+)')
_TAIL = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")


class Match(NamedTuple):
    """The line of a key, from 1, and how many parts of the key the text contains."""

    line: int
    depth: int


def find(text: str, key: str, data: dict[str, Any]) -> Match | None:
    r"""Returns the line of a key, or of the innermost of its tables; None without a match.

    >>> text = '[path]\ndelay = "5ms"\n[[protocols]]\nname = "sr"\n\nwindow = 0\n'
    >>> data = tomllib.loads(text)
    >>> find(text, "protocols.sr.window", data), find(text, "path.rate", data), find(text, "x", data)
    (Match(line=6, depth=3), Match(line=1, depth=1), None)
    """
    known = _lines(text)
    place = _place(key, data)
    while place and place not in known:
        place = place[:-1]
    return Match(known[place], len(place)) if place in known else None


def of_syntax_error(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    r"""Returns the line of a syntax error, and the error without it.

    >>> try:
    ...     tomllib.loads("a = 1\nb\n")
    ... except tomllib.TOMLDecodeError as error:
    ...     of_syntax_error("a = 1\nb\n", error)
    (2, "Expected '=' after a key in a key/value pair")
    """
    message = str(error)
    match = _TAIL.search(message)
    line = int(match[1]) if match and match[1] else len(text.splitlines()) or 1
    reason = _TAIL.sub("", message)
    return line, _REASONS.get(reason, reason)


_REASONS = {
    r"Illegal character '\n'": "the line ends inside a text in quotes",
    "Unterminated string": "a text in quotes has no end",
    "Invalid initial character for a key part": "a key is expected, e.g. after a comma in { }",
    "Invalid value": "a value is expected after =: text needs quotes",
    "Unclosed inline table": "{ has no }, or a line ends inside { }",
    "Unclosed array": "[ has no ]",
}
"""Messages of the parser that do not say what is wrong, in the words of a study."""


def _place(key: str, data: Any) -> Place:
    """A key of a message as a place: entries of lists are named in it, or counted from 1."""
    place: list[str | int] = []
    parts = [next(filter(None, match.groups()), "") for match in _PART.finditer(key)]
    for number, part in enumerate(parts):
        if isinstance(data, list):
            entry = _entry(part, data)
            if not entry:
                break
            # A claim of a group without the next key has that of its group.
            wanted = parts[number + 1] if number + 1 < len(parts) else ""
            while EACH in entry and wanted not in _inner(data, entry) and wanted in _inner(data, entry[:-2]):
                entry = entry[:-2]
            place += entry
            data = _inner(data, entry)
        else:
            place.append(part)
            data = data.get(part) if isinstance(data, dict) else None
    return tuple(place)


def _entry(part: str, entries: list[Any]) -> Place:
    """The place of an entry by its name or number in a list, or in a group of claims; empty for none."""
    names = [_name(entry) for entry in entries]
    at = names.index(part) if part in names else int(part) - 1 if part.isdigit() else -1
    if 0 <= at < len(entries) and (part in names or not any(map(members, entries))):
        return (at,)
    for number, entry in enumerate(entries):
        if inner := _entry(part, members(entry)):
            return (number, EACH, *inner)
    return ()


def _name(entry: Any) -> Any:
    return entry.get("id", entry.get("name")) if isinstance(entry, dict) else None


def _inner(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def _lines(text: str) -> dict[Place, int]:
    """The line of each key and of each table's header."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    for number, statement in _statements(text):
        try:
            content = tomllib.loads(statement)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        if statement.lstrip().startswith("["):
            table = _header(content, counts)
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
        else:
            _keys(content, table, number, statement.splitlines(), found)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """(first line from 1, text) of each header and each key with its value."""
    lines = text.splitlines()
    start = 0
    while start < len(lines):
        stop = start + 1
        if lines[start].strip() and not lines[start].lstrip().startswith("#"):
            while stop < min(len(lines), start + LONGEST) and not _whole(lines[start:stop]):
                stop += 1
            yield start + 1, "\n".join(lines[start:stop])
        start = stop


def _whole(lines: list[str]) -> bool:
    try:
        tomllib.loads("\n".join(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _header(content: Any, counts: dict[Place, int]) -> Place:
    """The place of a header's table; a table inside a list of tables belongs to the last of them."""
    place: Place = ()
    while isinstance(content, dict) and content:
        name, content = next(iter(content.items()))
        place = (*place, name)
        if isinstance(content, list):
            counts[place] = counts.get(place, -1) + 1
            content = content[0]
        if place in counts:
            place = (*place, counts[place])
    return place


def _keys(content: Any, table: Place, number: int, lines: list[str], found: dict[Place, int]) -> None:
    """Places of a statement's keys, also in inline tables and lists; a key of its own line has that line."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        place = (*table, key)
        at = _entry_offset(value, lines) if isinstance(key, int) and isinstance(value, dict) else 0
        offset = at or (_offset(rf'{re.escape(key)}"?\s*=', lines) if isinstance(key, str) else 0)
        found.setdefault(place, number + offset)
        if isinstance(value, dict | list):
            _keys(value, place, number + at, lines[at:], found)


def _entry_offset(entry: dict[str, Any], lines: list[str]) -> int:
    """The line of a statement of an entry of a list: the only one with a text of it."""
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    for key in sorted(texts, key=lambda key: key not in ("id", "name")):
        if at := _offset(rf"{re.escape(key)}\s*=\s*[\"']{re.escape(texts[key])}[\"']", lines):
            return at
    return 0


def _offset(assignment: str, lines: list[str]) -> int:
    """The line of a statement that contains an assignment: the only one, else the first."""
    assigned = re.compile(rf'(^|[\s,{{."]){assignment}')
    at = [number for number, line in enumerate(lines) if assigned.search(line)]
    return at[0] if len(at) == 1 else 0
