"""Overrides of a study by the command line: `--set KEY=VALUE`, `--repeats`, `--world`, `--quick` ..."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from longfat.study import path_model
from longfat.study.keys import place
from longfat.study.nesting import check_depth
from longfat.study.plain import with_entries
from longfat.study.problems import show
from longfat.study.specification import Study
from longfat.study.sweep import NETWORKS, Roots, parts
from longfat.study.vocabulary import allowed

_TABLES = ("path", "topology", "workload", "protocols", "traffic", "sweep")
_SELECTION = ("repeats", "repeats_in", "max_repeats", "precision", "worlds", "title", "show", "claims")
"""Settings that select or describe trials, and change none."""
_UNSAFE = re.compile(r"[^\w.,=%+-]+")
_LONGEST = 80
_LISTS = {
    "protocols": 'write names or tables, e.g. ["cubic", {kind = "go-back-n", window = 8}]',
    "traffic": 'write tables, e.g. [{name = "rival", protocol = "cubic", workload = {kind = "bulk"}}]',
}
"""The lists of tables, with their form."""
SKELETON = tuple(key for key in Study.model_fields if key not in _TABLES)


@dataclass(frozen=True)
class Overrides:
    """Changes to a study before it runs.

    `settings` are pairs of dotted key and value (`read_setting`). `quick` reduces the changed study to half a
    minute (`longfat.study.quick`).
    """

    settings: tuple[tuple[str, Any], ...] = ()
    worlds: tuple[str, ...] = ()
    repeats: int | None = None
    seed: int | None = None
    precision: str | None = None
    quick: bool = False
    label: str = "--set"
    """The origin of `settings` in messages."""

    @property
    def any(self) -> bool:
        """Whether anything changes."""
        return (
            bool(self.settings or self.worlds or self.quick)
            or self.repeats is not None
            or self.seed is not None
            or self.precision is not None
        )

    @property
    def variant(self) -> str:
        """The changed settings as a file name; empty if the trials are those of the study.

        Numbers of trials, the precision and the worlds select trials of the same study.

        >>> Overrides((("path.delay", "100ms"), ("max_repeats", 80)), seed=7).variant
        'path.delay=100ms,seed=7'
        """
        changed = [(key, value) for key, value in self.settings if not _selects(key)]
        changed += [("seed", self.seed)] if self.seed is not None else []
        text = ",".join(f"{key}={_plain(value)}" for key, value in changed)
        name = _UNSAFE.sub("_", text)[:_LONGEST]
        # A shortened or changed name could be that of other settings.
        return name if name == text else f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def apply(self, data: dict[str, Any]) -> dict[str, str]:
        """Changes the raw tables of a study file in place and returns the changed keys with their options.

        Raises:
            ValueError: for an unknown key.
        """
        is_command = self.label.startswith("--")
        touched = {}
        if self.worlds:
            data["worlds"], touched["worlds"] = list(self.worlds), "--world" if is_command else "worlds"
        if self.repeats is not None:
            data["repeats"], touched["repeats"] = self.repeats, "--repeats" if is_command else "repeats"
            data.pop("repeats_in", None)
            # A limit below the new number would contradict it.
            data.pop("max_repeats", None)
        if self.seed is not None:
            data["seed"], touched["seed"] = self.seed, "--seed" if is_command else "seed"
        if self.precision is not None:
            data["precision"] = self.precision
            touched["precision"] = "--precision" if is_command else "precision"
        for key, value in self.settings:
            try:
                touched |= dict.fromkeys(_set(data, key, copy.deepcopy(value)), self.label)
            except ValueError as error:
                raise ValueError(f"{self.label}: {key}: {error}") from None
        return touched

    def dropped_sweeps(self, data: Mapping[str, Any]) -> list[str]:
        """Returns the swept keys of a study file that a whole path replaces, without those set explicitly."""
        given = [key for key, _ in self.settings]
        swept = data.get("sweep")
        if "path" not in given or not isinstance(swept, dict):
            return []
        return [key for key in swept if key.startswith("path.") and key not in given]


def _selects(key: str) -> bool:
    """Returns whether a setting selects or describes trials, and changes none."""
    return key in _SELECTION or (key.startswith("protocols.") and key.endswith(".label"))


def _set(data: dict[str, Any], key: str, value: Any) -> list[str]:
    """Sets one key. Returns it as problems name it: `protocol.KEY` once per protocol."""
    if "." not in key and key in SKELETON:
        data[key] = with_entries({key: value})[key]
        return [key]
    if key == "path" and not isinstance(value, list):
        return _set_path(data, value)
    if key in _LISTS:
        return _set_list(data, key, value)
    entries = [entry for entry in _tables(data.get("protocols")) if isinstance(entry.get("name"), str)]
    names = [entry["name"] for entry in entries]
    roots = Roots.of(data)
    wrong = roots.problem(key)
    if wrong is not None:
        root = key.partition(".")[0]
        if root not in (*roots.names, *NETWORKS):
            wrong = f"unknown key: {allowed(root, (*SKELETON, *roots.names))}"
        raise ValueError(wrong)
    sweep = data.setdefault("sweep", {})
    if isinstance(sweep, dict):
        _leave_sweep(sweep, key)
        if isinstance(value, list):
            sweep[key] = value
            return [f'sweep."{key}"']
    if key.startswith("protocol."):
        for entry in entries:
            place({"protocol": entry}, key, copy.deepcopy(value))
    else:
        place(data, key, value)
    if key.startswith("protocol."):
        return [f"protocols.{name}.{key.removeprefix('protocol.')}" for name in names]
    return [key]


def _set_list(data: dict[str, Any], key: str, value: Any) -> list[str]:
    """Replaces all protocols or all traffic, and removes the swept keys of entries that are gone."""
    entries = with_entries({key: value})[key]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{show(value)}: must be a list of tables; {_LISTS[key]}")
    data[key] = entries
    names = {entry.get("name") for entry in entries}
    if isinstance(swept := data.get("sweep"), dict):
        for one in list(swept):
            root, _, rest = one.partition(".")
            if root == key and rest.partition(".")[0] not in names:
                del swept[one]
    return [key]


def _set_path(data: dict[str, Any], value: Any) -> list[str]:
    """Replaces the study's path, and removes swept path keys."""
    if "topology" in data:
        raise ValueError("cannot be set because the study has a [topology]")
    data["path"] = path_model.of_setting(value)
    if isinstance(swept := data.get("sweep"), dict):
        _leave_sweep(swept, "path")
    return ["path"]


def _leave_sweep(sweep: dict[str, Any], key: str) -> None:
    """Removes a key from the sweep, with the keys of single protocols that it covers."""
    if key.startswith("protocols.") and (common := f"protocol.{key.split('.', 2)[2]}") in sweep:
        raise ValueError(f"the study sweeps {common} for all protocols: set that key instead")
    for swept in sweep:
        together = parts(swept)
        if key.startswith(f"{swept}.") or (key in together and len(together) > 1):
            raise ValueError(f"the study sweeps {swept}: set that key instead")
    for_all = key.removeprefix("protocol.") if key.startswith("protocol.") else ""
    for swept in list(sweep):
        of_one = for_all and swept.startswith("protocols.") and swept.split(".", 2)[2:] == [for_all]
        if swept == key or swept.startswith(f"{key}.") or of_one:
            del sweep[swept]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _tables(value: Any) -> Iterable[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def read_setting(text: str, option: str = "--set", example: str = "path.loss=2%") -> tuple[str, Any]:
    """Reads `KEY=VALUE`. The value is TOML (number, list, table, quoted text) or else plain text.

    `option` and `example` are for messages.

    >>> read_setting("path=@measured.toml")
    ('path', '@measured.toml')
    >>> read_setting("protocol.window=8"), read_setting("path.loss=2%")
    (('protocol.window', 8), ('path.loss', '2%'))
    >>> read_setting('path.loss=["1%", "2%"]')
    ('path.loss', ['1%', '2%'])
    """
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        raise ValueError(f'{option}: "{text}": write KEY=VALUE, e.g. {example}')
    if "\n" in value:
        return key, value
    try:
        read = tomllib.loads(f"value = {value}\n")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
    except RecursionError:
        raise ValueError(f"{option}: {key}: nested too deeply") from None
    check_depth(read, f"{option}: {key}: ")
    return key, read
