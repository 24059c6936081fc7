"""Keys and metrics of studies, as the native module declares them.

Names, units, ranges, defaults and help come from `_native.vocabulary()`.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from longfat import _native
from longfat.extensions.names import FILE_SUFFIX, INTERACTIVE, SEPARATOR
from longfat.study import homes
from longfat.study.keys import lookup

Section = Literal["path", "topology", "protocol", "workload", "traffic"]
SECTIONS: tuple[Section, ...] = ("path", "topology", "protocol", "workload", "traffic")

AT_HOST = "@"
"""Separates a metric from its host or link: `goodput@s3`, `drops@uplink/1/2`."""

# Units at the end of metric names in records; studies can omit them.
_UNIT_SUFFIXES = {"_bps": "bit/s", "_s": "s"}


@functools.cache
def vocabulary() -> dict[str, Any]:
    """Returns the JSON Schemas of `SECTIONS`, `presets`, `metrics`, `flows` and `units`."""
    known: dict[str, Any] = json.loads(_native.vocabulary())
    return known


@functools.cache
def _check(section: Section, text: str) -> tuple[tuple[str, str], ...]:
    problems = json.loads(_native.check(section, text))
    settings = json.loads(text) if problems else {}
    found = (_innermost(settings, _dotted(p["key"]), str(p["message"]).strip()) for p in problems)
    return tuple((f"{section}.{key}".rstrip("."), _hinted(section, key, message)) for key, message in found)


_UNKNOWN_KEY = "unknown key: allowed: "
_SYNONYMS = {
    "rtt": ("delay", " (one-way: half of the RTT)"),
    "latency": ("delay", " (one-way)"),
    "bandwidth": ("rate", ""),
    "capacity": ("rate", ""),
    "buffer": ("queue", ""),
}
"""Common names of keys that have another name here, with a remark."""


def _with_synonym(key: str, message: str) -> str:
    """Returns a message about an unknown key with the allowed one that its name probably means.

    >>> _with_synonym("rtt", "unknown key: allowed: rate, delay")
    'unknown key: did you mean "delay" (one-way: half of the RTT)? allowed: rate, delay'
    >>> _with_synonym("rtt", "unknown key: allowed: kind")
    'unknown key: allowed: kind'
    """
    name, remark = _SYNONYMS.get(key.rpartition(".")[2], ("", ""))
    if not message.startswith(_UNKNOWN_KEY) or name not in message.removeprefix(_UNKNOWN_KEY).split(", "):
        return message
    return f'unknown key: did you mean "{name}"{remark}? {message.removeprefix("unknown key: ")}'


def _hinted(section: str, key: str, message: str) -> str:
    """Returns a message about an unknown key with what it probably means, or the tables that have it."""
    hinted = _with_synonym(key, message)
    if hinted == message and message.startswith(_UNKNOWN_KEY):
        return unknown_key(key.rpartition(".")[2], section, message.removeprefix("unknown key: "))
    return hinted


def unknown_key(name: str, section: str, known: str) -> str:
    """Returns a message about an unknown key of a section, or of the top level (""), before what is allowed.

    >>> unknown_key("warm_up", "", "allowed: title")
    'unknown key: it is a key of workload; allowed: title'
    """
    home = homes.hint(name, section, vocabulary())
    return f"unknown key: {home}; {known}" if home else f"unknown key: {known}"


def _innermost(settings: Any, key: str, message: str) -> tuple[str, str]:
    """Returns a problem under its whole key, if the message starts with a key inside a table.

    >>> _innermost({"congestion": {"alpah": 2}}, "congestion", "alpah: unknown key")
    ('congestion.alpah', 'unknown key')
    """
    inner, colon, rest = message.partition(": ")
    table = lookup(settings, key.split("."))
    return (
        (f"{key}.{inner}", rest) if colon and isinstance(table, dict) and inner in table else (key, message)
    )


def _dotted(key: str) -> str:
    """Returns a native key as sweeps and overrides write it: list entries count from 1.

    >>> _dotted("access[1].rate")
    'access.2.rate'
    """
    return re.sub(r"\[(\d+)\]", lambda match: f".{int(match[1]) + 1}", key)


def check(section: Section, settings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Returns the problems of one section's settings as (dotted key, message)."""
    text = canonical(settings)
    # A controller in a Python file or a notebook can change while this process runs.
    may_change = any(place + SEPARATOR in text for place in (FILE_SUFFIX, INTERACTIVE))
    known = _check.__wrapped__ if may_change else _check
    return known(section, text)


def canonical(value: object) -> str:
    """Returns JSON with sorted keys and no spaces; raises ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def metrics() -> dict[str, dict[str, Any]]:
    """Returns `unit`, `help` and `better` (higher or lower) of each metric, by its column in records."""
    known: dict[str, dict[str, Any]] = vocabulary()["metrics"]
    return known


@functools.cache
def link_metrics() -> frozenset[str]:
    """Returns the metrics that each link has on request, with and without their units."""
    columns = [column for column, about in metrics().items() if about.get("of_links")]
    return frozenset(name for column in columns for name in (column, short_metric(column)))


def link_of(metric: str) -> str:
    """Returns the link of a metric of a single link; empty for other metrics.

    >>> link_of("drops@uplink/1/2"), link_of("drops"), link_of("goodput@s1")
    ('uplink/1/2', '', '')
    """
    name, _, link = metric.partition(AT_HOST)
    return link if name in link_metrics() else ""


@functools.cache
def protocol_kinds() -> tuple[str, ...]:
    """Returns the kinds of protocols: tcp, mptcp, go-back-n, ..."""
    section = vocabulary()["protocol"]
    definitions = section["$defs"]

    def kinds(schema: dict[str, Any]) -> list[str]:
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        own = [str(schema["const"])] if "const" in schema else list(map(str, schema.get("enum", ())))
        inner = [schema.get("properties", {}).get("kind", {})] if "properties" in schema else []
        inner += [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
        return [*own, *(kind for one in inner for kind in kinds(one))]

    return tuple(dict.fromkeys(kinds(section)))


def short_metric(column: str) -> str:
    """Returns a metric's name without its unit.

    >>> short_metric("goodput_bps"), short_metric("rtt_p99_s"), short_metric("goodput_bps@s1")
    ('goodput', 'rtt_p99', 'goodput@s1')
    """
    metric, at, host = column.partition(AT_HOST)
    for suffix in _UNIT_SUFFIXES:
        if metric.endswith(suffix):
            return metric.removesuffix(suffix) + at + host
    return column


def whole_metric(column: str) -> str:
    """Returns a metric's name without its host.

    >>> whole_metric("goodput_bps@s1"), whole_metric("goodput_bps")
    ('goodput_bps', 'goodput_bps')
    """
    return column.partition(AT_HOST)[0]


def unit(column: str) -> str:
    """Returns the unit of a metric's column; that of a metric of the study alone from the end of its name.

    >>> unit("goodput_bps@s1"), unit("waiting_s"), unit("jain")
    ('bit/s', 's', '')
    """
    whole = whole_metric(column)
    if whole in metrics():
        return str(metrics()[whole]["unit"])
    return next((found for suffix, found in _UNIT_SUFFIXES.items() if whole.endswith(suffix)), "")


def resolve_metric(name: str, own: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns the column of a metric, given with or without its unit and host.

    `own` are the columns of the study's own metrics, by name.

    Raises:
        ValueError: for an unknown metric.

    >>> resolve_metric("goodput"), resolve_metric("goodput@s3")
    ('goodput_bps', 'goodput_bps@s3')
    """
    for known, column in own.items():
        if name in (known, column):
            return column
    metric, at, host = name.partition(AT_HOST)
    if at and not host:
        part = "link" if metric in link_metrics() else "host"
        example = "forward" if part == "link" else "s1"
        raise ValueError(f'"{name}" has no {part}; write e.g. "{metric or "goodput"}@{example}"')
    for column in metrics():
        if metric in (column, short_metric(column)):
            return column + at + host
    raise ValueError(f'"{name}" is not a metric; {allowed(metric, [*own, *map(short_metric, metrics())])}')


def resolve_metrics(names: Iterable[str], own: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Returns the columns of several metrics; raises ValueError with all unknown ones."""
    listed = list(names)
    columns = {metric for column in metrics() for metric in (column, short_metric(column))}
    columns |= {*own, *own.values()}
    bad = [name for name in listed if whole_metric(name) not in columns]
    if len(bad) > 1:
        raise ValueError(unknown(bad, [*own, *map(short_metric, metrics())], "metric"))
    return [resolve_metric(name, own) for name in listed]


def allowed(name: str, known: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: the nearest known name, and all that are allowed.

    >>> allowed("dealy", ["rate", "delay"])
    'did you mean "delay"? allowed: rate, delay'
    """
    names = list(known)
    near = nearest(name, names)
    return (f'did you mean "{near}"? ' if near else "") + f"allowed: {', '.join(names)}"


def unknown(names: Iterable[str], known: Iterable[str], what: str) -> str | None:
    """Returns one message for all unknown names of a list; None if all are known.

    >>> unknown(["sim", "rely", "netz"], ["sim", "relay", "netns"], "world")
    '"rely" and "netz" are not worlds; did you mean "relay" and "netns"? allowed: sim, relay, netns'
    >>> unknown(["rely"], ["sim", "relay"], "world")
    '"rely" is not a world; did you mean "relay"? allowed: sim, relay'
    """
    listed = list(known)
    bad = [name for name in dict.fromkeys(names) if name not in listed]
    if not bad:
        return None
    if len(bad) == 1:
        return f'"{bad[0]}" is not a {what}; {allowed(bad[0], listed)}'
    near = [f'"{found}"' for name in bad if (found := nearest(name, listed))]
    hint = f"did you mean {_and(near)}? " if near else ""
    quoted = [f'"{name}"' for name in bad]
    return f"{_and(quoted)} are not {what}s; {hint}allowed: {', '.join(listed)}"


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is most similar to a mistyped one; None if none is similar.

    >>> nearest("sweeep", ["seed", "sweep"])
    'sweep'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None
