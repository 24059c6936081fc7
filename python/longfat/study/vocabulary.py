"""What a study may say about paths, protocols, workloads and metrics, as the native part declares it.

There is no second list here: names, units, ranges, defaults and help all come from `_native.vocabulary()`.
"""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Iterable
from typing import Any, Literal

from longfat import _native

Section = Literal["path", "protocol", "workload"]
SECTIONS: tuple[Section, ...] = ("path", "protocol", "workload")

# The unit at the end of a metric's name in records; a study's author may leave it out.
_UNIT_SUFFIXES = ("_bps", "_s")


@functools.cache
def vocabulary() -> dict[str, Any]:
    """The whole vocabulary: `path`, `protocol`, `workload` (JSON Schemas), `presets`, `metrics`."""
    known: dict[str, Any] = json.loads(_native.vocabulary())
    return known


@functools.cache
def _check(section: Section, text: str) -> tuple[tuple[str, str], ...]:
    problems = json.loads(_native.check(section, text))
    return tuple((f"{section}.{p['key']}".rstrip("."), str(p["message"]).strip()) for p in problems)


def check(section: Section, settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The problems of one section's settings, as (dotted key with its section, message); empty where fine."""
    return _check(section, canonical(settings))


def canonical(value: object) -> str:
    """JSON in the form that equal values share: sorted keys, no spaces. ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def metrics() -> dict[str, dict[str, Any]]:
    """Each metric's column name in records with its `unit`, `help` and `better` (higher or lower)."""
    known: dict[str, dict[str, Any]] = vocabulary()["metrics"]
    return known


def short_metric(column: str) -> str:
    """A metric's name without its unit: `goodput` for `goodput_bps`.

    >>> short_metric("goodput_bps"), short_metric("rtt_p99_s"), short_metric("timeouts")
    ('goodput', 'rtt_p99', 'timeouts')
    """
    for suffix in _UNIT_SUFFIXES:
        if column.endswith(suffix):
            return column.removesuffix(suffix)
    return column


def resolve_metric(name: str) -> str:
    """The column of a metric named with its unit or without; ValueError names the known ones."""
    for column in metrics():
        if name in (column, short_metric(column)):
            return column
    raise ValueError(f'"{name}" is no metric; {allowed(name, map(short_metric, metrics()))}')


def allowed(word: str, known: Iterable[str]) -> str:
    """The end of an error about a word: what is allowed, and the nearest known word if any is near.

    >>> allowed("dealy", ["rate", "delay"])
    'allowed: rate, delay; did you mean "delay"?'
    """
    words = list(known)
    near = nearest(word, words)
    return f"allowed: {', '.join(words)}" + (f'; did you mean "{near}"?' if near else "")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to a mistyped one, None where none is near.

    >>> nearest("sweeep", ["seed", "sweep"])
    'sweep'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None
