"""Expressions as values of keys: `queue = "2BDP"`, `size = "1MB / topology.leaves"`.

They are replaced by their values in the specification of each cell, so that trials, records and the native
part contain quantities only. RTT is the round-trip propagation delay of the first measured flow, and BDP
(bandwidth-delay product) its product with the lowest mean rate on the way.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from longfat import _native
from longfat.extensions.names import is_class
from longfat.study import units
from longfat.study.expressions.dimension import DURATION, SIZE, ExpressionError, Value, of_text
from longfat.study.expressions.evaluation import RELATIVE, evaluate
from longfat.study.expressions.parsing import FUNCTIONS, Call, Node, Quantity, names, parse
from longfat.study.keys import lookup
from longfat.study.vocabulary import SECTIONS, canonical, check, nearest

BDP, RTT = RELATIVE
FILES = (".csv", ".json", ".parquet", ".toml", ".trace", ".txt")
UNITS = rf"(?:{'|'.join(RELATIVE)})\b"
START = rf"[\s(+-]*(?:\d|(?:{'|'.join(FUNCTIONS)})\s*\(|(?:{'|'.join((*SECTIONS, 'protocols'))})\.|{UNITS})"
"""The start of an expression: a number, a function, a key or a unit of the path."""
_START = re.compile(START)
KEY = rf"^(?:{'|'.join((*SECTIONS, 'protocols'))})(?:\.[A-Za-z0-9_-]+)+$"
"""A key alone."""
_KEY = re.compile(KEY)
_PARTS = re.compile(rf"[-+*/(]|{UNITS}")
_NO_BDP = "the path has no rate, so it has no BDP"
_TYPICAL = {RTT: Value(Fraction(1, 100), DURATION), BDP: Value(Fraction(100_000), SIZE)}
"""Values that give other keys a valid value while RTT and BDP are not known yet."""


Place = tuple[str | int, ...]
Places = tuple[Place, ...]
"""Keys with expressions, part by part."""
Independent = dict[Places, dict[Place, str | int | float]]
"""Sets of keys that do not change RTT and BDP with values that they can have, for specifications alike."""


class NetworkError(ExpressionError):
    """An expression that needs RTT or BDP of an invalid network."""


class SettingError(ExpressionError):
    """A key without a value, because of its expression or because it is wrong. The text has the reason."""

    def __init__(self, key: str, reason: str, text: str | None) -> None:
        super().__init__(reason if text is None else f'"{text}": {reason}')
        self.key = key


def is_expression(value: object) -> bool:
    """Returns whether the value of a key is an expression, and not a quantity or a name.

    >>> [is_expression(one) for one in ("2BDP", "1MB / 4", "topology.leaves * 2", "workload.flows")]
    [True, True, True, True]
    >>> [is_expression(one) for one in ("1000/s", "10Mbits/s", "cubic", "a/b.csv", "path.csv")]
    [False, False, False, False, False]
    """
    if isinstance(value, str) and _KEY.match(value):
        return not value.endswith(FILES)
    if not isinstance(value, str) or not _START.match(value) or not _PARTS.search(value):
        return False
    return value.endswith(RELATIVE) or not units.resembles(value)


def contains(settings: object) -> bool:
    """Returns whether nested settings have an expression."""
    return next(_found(settings, ()), None) is not None


Values = tuple[tuple[Place, str, str | int | float], ...]
"""The keys of a specification with expressions, part by part, with their expressions and values."""


def expressions(value: object, key: str) -> list[tuple[Place, str]]:
    """Returns the keys with expressions in the value of a dotted key, part by part, and their expressions."""
    return list(_found(value, tuple(key.split("."))))


def is_relative(tree: Node) -> bool:
    """Returns whether an expression itself needs RTT or BDP."""
    return any(text.endswith(RELATIVE) for text in _quantities(tree)) or any(
        name in RELATIVE for name in names(tree)
    )


def values(
    spec: Mapping[str, Any],
    protocol: str = "",
    places: Sequence[tuple[Place, str]] | None = None,
    independent: Independent | None = None,
) -> Values:
    """Returns the values of the expressions in a specification (see `resolved`), which `places` lists."""
    places = list(_found(spec, ())) if places is None else places
    if not places:
        return ()
    found = _Resolver(spec, places, protocol).result({} if independent is None else independent)
    return tuple((place, text, found[place]) for place, text in places)


def with_values(spec: Mapping[str, Any], found: Values) -> dict[str, Any]:
    """Returns a specification with values in place of expressions; tables without any are shared.

    >>> spec = {"path": {"queue": "1BDP"}, "protocol": {"kind": "tcp"}}
    >>> done = with_values(spec, ((("path", "queue"), "1BDP", "50kB"),))
    >>> done["path"], spec["path"], done["protocol"] is spec["protocol"]
    ({'queue': '50kB'}, {'queue': '1BDP'}, True)
    """
    return _placed(spec, {place: value for place, _, value in found})


def by_key(found: Values) -> dict[str, tuple[str, str | int | float]]:
    """Returns expressions and their values by dotted key."""
    return {dotted(place): (text, value) for place, text, value in found}


@dataclass(frozen=True)
class Resolved:
    """A specification with values in place of expressions, and both by dotted key."""

    spec: dict[str, Any]
    values: dict[str, tuple[str, str | int | float]] = field(default_factory=dict)


def resolved(spec: Mapping[str, Any], protocol: str = "") -> Resolved:
    """Returns a specification with values in place of its expressions.

    `protocol` is the name by which `protocols.NAME.KEY` means the specification's own protocol.

    Raises:
        SettingError: for an expression without a value.

    >>> spec = {"path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "2BDP"},
    ...         "workload": {"kind": "file", "size": "workload.flows * 10kB", "flows": 4},
    ...         "protocol": {"kind": "tcp"}}
    >>> found = resolved(spec)
    >>> found.spec["path"]["queue"], found.values["workload.size"]
    ('100000B', ('workload.flows * 10kB', '40000B'))
    """
    found = values(spec, protocol)
    return Resolved(with_values(spec, found), by_key(found))


def value_in(spec: Mapping[str, Any], text: str, protocol: str = "") -> str | int | float:
    """Returns the value of an expression in a specification without expressions.

    Raises:
        ExpressionError: for an expression without a value there.

    >>> value_in({"path": {"rate": "10Mbit/s"}}, "path.rate / 5")
    '2Mbit/s'
    """
    return _Resolver(spec, [], protocol).value_of_text(text)


def _found(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, Mapping):
        # The parameters of a Python class are its own: their text may mean anything.
        own = () if is_class(value.get("kind")) else value
        for key in own:
            yield from _found(value[key], (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _found(inner, (*place, number))
    elif is_expression(value):
        yield place, str(value)


class _Resolver:
    def __init__(self, spec: Mapping[str, Any], places: Sequence[tuple[Place, str]], protocol: str) -> None:
        self._spec = spec
        self._places = places
        self._own = f"protocols.{protocol}." if protocol else ""
        self._relative: dict[str, Value] = dict(_TYPICAL)

    def result(self, independent: Independent) -> dict[Place, str | int | float]:
        """Returns the values of all expressions."""
        trees = {place: self._tree(place, text) for place, text in self._places}
        users = tuple(place for place, tree in trees.items() if self._is_relative(tree, ()))
        if not users:
            return self._settings(trees)
        known = independent.get(users)
        first = self._settings({place: tree for place, tree in trees.items() if place not in (known or ())})
        self._relative = self._measured(_placed(self._spec, first | (known or {})), users)
        found = self._settings(trees)
        if known is None:
            if self._measured(_placed(self._spec, found), users) != self._relative:
                place = next((one for one in users if one[0] in ("path", "topology")), users[0])
                raise self._error(place, "depends on itself: it changes the path's RTT or BDP")
            independent[users] = {place: first[place] for place in users}
        return found

    def value_of_text(self, text: str) -> str | int | float:
        """Returns the value of an expression that is no value of a key."""
        tree = parse(text)
        if self._is_relative(tree, ()):
            try:
                rtt, rate = _rtt_and_rate(self._spec)
            except ValueError as error:
                raise NetworkError(f"needs a valid network: {' '.join(str(error).split())}") from None
            if rate is None and BDP in text:
                raise ExpressionError(_NO_BDP)
            self._relative = _relative(rtt, rate)
        return self._value(tree, ()).setting()

    def _unusable(self, spec: Mapping[str, Any], user: Place, error: ValueError) -> SettingError:
        """Returns the error of a network without RTT and BDP, because a key has a wrong value."""
        texts = {dotted(place): text for place, text in self._places}
        for key, message in _section_problems(spec):
            return SettingError(key, message, texts.get(key))
        return SettingError(
            dotted(user), f"needs a valid network: {' '.join(str(error).split())}", self._text(user)
        )

    def _settings(self, trees: Mapping[Place, Node]) -> dict[Place, str | int | float]:
        """Returns the values of all expressions, for the present RTT and BDP."""
        found = {}
        for place, tree in trees.items():
            try:
                found[place] = self._value(tree, (dotted(place),)).setting()
            except SettingError:
                raise
            except ExpressionError as error:
                raise self._error(place, str(error)) from None
        return found

    def _tree(self, place: Place, text: str) -> Node:
        try:
            return parse(text)
        except ExpressionError as error:
            raise self._error(place, str(error)) from None

    def _error(self, place: Place, reason: str) -> SettingError:
        return SettingError(dotted(place), reason, self._text(place))

    def _text(self, place: Place) -> str:
        return str(_at(self._spec, place))

    def _value(self, tree: Node, within: tuple[str, ...]) -> Value:
        return evaluate(tree, lambda name: self._value_of(name, within))

    def _value_of(self, name: str, within: tuple[str, ...]) -> Value:
        if name in RELATIVE:
            return self._relative[name]
        key = self._key(name)
        if key in within:
            raise ExpressionError(f"{' needs '.join((*within, key))}: a cycle")
        value = lookup(self._spec, key.split("."))
        if value is None:
            raise ExpressionError(f'"{name}" is not set in this study{_hint(name, self._spec)}')
        if is_expression(value):
            return self._value(parse(str(value)), (*within, key))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ExpressionError(f'"{name}" is not a quantity')
        try:
            return of_text(str(value))
        except ValueError:
            raise ExpressionError(f'"{name}" is "{value}", which is not a quantity') from None

    def _key(self, name: str) -> str:
        return name.replace(self._own, "protocol.", 1) if self._own and name.startswith(self._own) else name

    def _is_relative(self, tree: Node, within: tuple[str, ...]) -> bool:
        """Returns whether an expression needs RTT or BDP, itself or through other keys."""
        if is_relative(tree):
            return True
        for name in set(names(tree)) - set(within):
            value = lookup(self._spec, self._key(name).split("."))
            if is_expression(value) and self._is_relative(parse(str(value)), (*within, name)):
                return True
        return False

    def _measured(self, spec: dict[str, Any], users: Places) -> dict[str, Value]:
        """Returns RTT and BDP of a specification without expressions."""
        try:
            rtt, rate = _rtt_and_rate(spec)
        except ValueError as error:
            raise self._unusable(spec, users[0], error) from None
        if rate is None and (place := next((one for one in users if BDP in self._text(one)), None)):
            raise self._error(place, _NO_BDP)
        return _relative(rtt, rate)


def _rtt_and_rate(spec: Mapping[str, Any]) -> tuple[Fraction, Fraction | None]:
    """Returns the RTT (s) of the first measured flow and the lowest rate (bit/s) on its way, if it has one.

    Raises:
        ValueError: for an invalid specification.
    """
    layout = json.loads(_native.layout(canonical({**spec, "seed": 0, "trial": 0})))
    flow = next(flow for flow in layout["flows"] if flow["traffic"] is None)
    there = [layout["links"][number] for number in flow["links"]]
    back = [layout["links"][number] for number in flow["reverse_links"]]
    nanoseconds = sum(round(link["delay_s"] * 10**9) for link in (*there, *back))
    rates = [link["mean_rate_bps"] for link in there if link["mean_rate_bps"] is not None]
    return Fraction(nanoseconds, 10**9), Fraction(min(rates)) if rates else None


def _relative(rtt: Fraction, rate: Fraction | None) -> dict[str, Value]:
    return {RTT: Value(rtt, DURATION), BDP: Value(rtt * (rate or 0), SIZE)}


def _section_problems(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, settings in spec.items():
        if section in SECTIONS and isinstance(settings, dict):
            yield from check(section, settings)


def _quantities(tree: Node) -> Iterator[str]:
    if isinstance(tree, Quantity):
        yield tree.text
    elif isinstance(tree, Call):
        for argument in tree.arguments:
            yield from _quantities(argument)


def _placed(spec: Mapping[str, Any], settings: Mapping[Place, Any]) -> dict[str, Any]:
    """Returns a specification with other values at some places; it shares all unchanged parts."""
    found = dict(spec)
    copied: dict[Place, Any] = {(): found}
    for place, setting in settings.items():
        for length in range(1, len(place)):
            if place[:length] not in copied:
                parent = copied[place[: length - 1]]
                copied[place[:length]] = parent[place[length - 1]] = copy.copy(parent[place[length - 1]])
        copied[place[:-1]][place[-1]] = setting
    return found


def _at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def dotted(place: Place) -> str:
    """Returns a key as studies write it: list entries count from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in place)


def _hint(name: str, spec: Mapping[str, Any]) -> str:
    known = list(_keys(spec, ""))
    near = nearest(name, known)
    return f'; did you mean "{near}"?' if near else ""


def _keys(value: object, key: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part, inner in value.items():
            yield from _keys(inner, f"{key}.{part}" if key else str(part))
    else:
        yield key
