"""What a study may say about networks, protocols, workloads and metrics, as the native part declares it.

There is no second list here: names, units, ranges, defaults and help all come from `_native.vocabulary()`.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Iterable
from typing import Any, Literal

from longfat import _native
from longfat.keys import lookup
from longfat.named_classes import FILE_SUFFIX, INTERACTIVE, SEPARATOR

Section = Literal["path", "topology", "protocol", "workload", "traffic"]
SECTIONS: tuple[Section, ...] = ("path", "topology", "protocol", "workload", "traffic")

AT_HOST = "@"
"""Between a metric and the host that it is of: `goodput@s3`."""

# The unit at the end of a metric's name in records; a study's author may leave it out.
_UNIT_SUFFIXES = ("_bps", "_s")


@functools.cache
def vocabulary() -> dict[str, Any]:
    """The whole vocabulary: the JSON Schemas of `SECTIONS`, `presets`, `metrics`."""
    known: dict[str, Any] = json.loads(_native.vocabulary())
    return known


@functools.cache
def _check(section: Section, text: str) -> tuple[tuple[str, str], ...]:
    problems = json.loads(_native.check(section, text))
    settings = json.loads(text) if problems else {}
    found = (_innermost(settings, _dotted(p["key"]), str(p["message"]).strip()) for p in problems)
    return tuple((f"{section}.{key}".rstrip("."), message) for key, message in found)


def _innermost(settings: Any, key: str, message: str) -> tuple[str, str]:
    """A problem with a key inside a table, which a message may begin with, under the whole key.

    >>> _innermost({"congestion": {"alpah": 2}}, "congestion", "alpah: unknown key")
    ('congestion.alpah', 'unknown key')
    """
    inner, colon, rest = message.partition(": ")
    table = lookup(settings, key.split("."))
    return (
        (f"{key}.{inner}", rest) if colon and isinstance(table, dict) and inner in table else (key, message)
    )


def _dotted(key: str) -> str:
    """A key of the native part as sweeps and overrides write it, which count a list's entries from 1.

    >>> _dotted("access[1].rate")
    'access.2.rate'
    """
    return re.sub(r"\[(\d+)\]", lambda match: f".{int(match[1]) + 1}", key)


def check(section: Section, settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The problems of one section's settings, as (dotted key with its section, message); empty where fine."""
    text = canonical(settings)
    # A controller in a Python file or a notebook may change while this process lives.
    may_change = any(place + SEPARATOR in text for place in (FILE_SUFFIX, INTERACTIVE))
    known = _check.__wrapped__ if may_change else _check
    return known(section, text)


def canonical(value: object) -> str:
    """JSON in the form that equal values share: sorted keys, no spaces. ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def metrics() -> dict[str, dict[str, Any]]:
    """Each metric's column name in records with its `unit`, `help` and `better` (higher or lower)."""
    known: dict[str, dict[str, Any]] = vocabulary()["metrics"]
    return known


@functools.cache
def protocol_kinds() -> tuple[str, ...]:
    """The kinds of protocols: tcp, mptcp, go-back-n, ..."""
    section = vocabulary()["protocol"]
    definitions = section["$defs"]

    def words(schema: dict[str, Any]) -> list[str]:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        own = [str(schema["const"])] if "const" in schema else list(map(str, schema.get("enum", ())))
        inner = [schema.get("properties", {}).get("kind", {})] if "properties" in schema else []
        inner += [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
        return [*own, *(word for one in inner for word in words(one))]

    return tuple(dict.fromkeys(words(section)))


def short_metric(column: str) -> str:
    """A metric's name without its unit: `goodput` for `goodput_bps`.

    >>> short_metric("goodput_bps"), short_metric("rtt_p99_s"), short_metric("goodput_bps@s1")
    ('goodput', 'rtt_p99', 'goodput@s1')
    """
    metric, at, host = column.partition(AT_HOST)
    for suffix in _UNIT_SUFFIXES:
        if metric.endswith(suffix):
            return metric.removesuffix(suffix) + at + host
    return column


def whole_metric(column: str) -> str:
    """A metric's name without the host that it is of.

    >>> whole_metric("goodput_bps@s1"), whole_metric("goodput_bps")
    ('goodput_bps', 'goodput_bps')
    """
    return column.partition(AT_HOST)[0]


def resolve_metric(name: str) -> str:
    """The column of a metric named with its unit or without, of one host or of all.

    Raises ValueError, naming the known ones, where there is no such metric.

    >>> resolve_metric("goodput"), resolve_metric("goodput@s3")
    ('goodput_bps', 'goodput_bps@s3')
    """
    metric, at, host = name.partition(AT_HOST)
    if at and not host:
        raise ValueError(f'"{name}" names no host: write e.g. "{metric or "goodput"}@s1"')
    for column in metrics():
        if metric in (column, short_metric(column)):
            return column + at + host
    raise ValueError(f'"{name}" is no metric; {allowed(metric, map(short_metric, metrics()))}')


def resolve_metrics(names: Iterable[str]) -> list[str]:
    """The columns of several metrics; ValueError names all of them that are unknown."""
    listed = list(names)
    columns = {metric for column in metrics() for metric in (column, short_metric(column))}
    bad = [name for name in listed if whole_metric(name) not in columns]
    if len(bad) > 1:
        raise ValueError(unknown(bad, map(short_metric, metrics()), "metric"))
    return [resolve_metric(name) for name in listed]


def allowed(word: str, known: Iterable[str]) -> str:
    """The end of an error about a word: what is allowed, and the nearest known word if any is near.

    >>> allowed("dealy", ["rate", "delay"])
    'allowed: rate, delay; did you mean "delay"?'
    """
    words = list(known)
    near = nearest(word, words)
    return f"allowed: {', '.join(words)}" + (f'; did you mean "{near}"?' if near else "")


def unknown(words: Iterable[str], known: Iterable[str], what: str) -> str | None:
    """Returns one message for all words of a list that are not known; None where all are.

    >>> unknown(["sim", "rely", "netz"], ["sim", "relay", "netns"], "world")
    '"rely" and "netz" are no worlds; allowed: sim, relay, netns; did you mean "relay" and "netns"?'
    >>> unknown(["rely"], ["sim", "relay"], "world")
    '"rely" is no world; allowed: sim, relay; did you mean "relay"?'
    """
    listed = list(known)
    bad = [word for word in dict.fromkeys(words) if word not in listed]
    if not bad:
        return None
    if len(bad) == 1:
        return f'"{bad[0]}" is no {what}; {allowed(bad[0], listed)}'
    near = [f'"{found}"' for word in bad if (found := nearest(word, listed))]
    hint = f"; did you mean {_and(near)}?" if near else ""
    quoted = [f'"{word}"' for word in bad]
    return f"{_and(quoted)} are no {what}s; allowed: {', '.join(listed)}{hint}"


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to a mistyped one, None where none is near.

    >>> nearest("sweeep", ["seed", "sweep"])
    'sweep'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None
