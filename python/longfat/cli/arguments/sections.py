"""Options for the keys of a section of the vocabulary, such as `[path]`."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat import _native
from longfat.cli.arguments.completion import values
from longfat.cli.arguments.extension import Command, extended

if TYPE_CHECKING:
    from longfat.study.vocabulary import Section

_FIRST = ("kind", "preset")
_LONGEST_KIND = 12
_DEFAULT_IN_HELP = re.compile(r"[.;]?\s*[Dd]efault:? .*$")

Given = dict[str, str | None]
"""The values of a section's options on the command line, by key."""


class SectionOptions:
    """The options of one section.

    Args:
        section: Name of the section in the vocabulary.
        names: Option names that differ from their key.
        left_out: Keys without an option, for `--set` alone.
        whole: Adds the command's own defaults to a JSON document of changes.
        defaults: Defaults of the command that `whole` does not add.
        setter: The option that sets any key.
    """

    def __init__(
        self,
        section: Section,
        *,
        names: Mapping[str, str] | None = None,
        left_out: Sequence[str] = (),
        whole: Callable[[str], str] = str,
        defaults: Mapping[str, Any] | None = None,
        setter: str = "--set",
    ) -> None:
        self._section = section
        self._names = names or {}
        self._whole = whole
        self._setter = setter
        self._defaults: dict[str, Any] = {**json.loads(whole("{}")), **(defaults or {})}
        schema = json.loads(_native.vocabulary())[section]
        self._definitions = schema.get("$defs", {})
        properties = self._table(schema)["properties"]
        # Keys that determine the others come first, as in `longfat list`.
        order = sorted(properties, key=lambda key: (key not in _FIRST, key))
        self._properties = {key: properties[key] for key in order if key not in left_out}

    def _table(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Returns the family of a section (TCP, ARQ) that has every key of the command's own defaults."""
        families: list[dict[str, Any]] = schema.get("anyOf", [schema])
        return next(family for family in families if set(self._defaults) <= set(family["properties"]))

    def added_to(self, command: Command) -> Command:
        """Returns a command with these options, whose values its parameter `given` receives as a dict."""
        added = {f"{self._section}_{key}": key for key in self._properties}
        parameters = [self._parameter(name, key) for name, key in added.items()]
        return extended(
            command, "given", parameters, lambda values: {added[name]: text for name, text in values.items()}
        )

    def _parameter(self, name: str, key: str) -> inspect.Parameter:
        about = self._properties[key]
        option = typer.Option(
            self._option(key),
            metavar=_kind(about),
            help=self._help(key, about),
            autocompletion=values(about, self._definitions),
        )
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
        )

    def _takes_numbers(self, about: Mapping[str, Any]) -> bool:
        listed = [about, *about.get("anyOf", ()), *about.get("oneOf", ())]
        inner = [self._definitions[one["$ref"].rpartition("/")[2]] for one in listed if "$ref" in one]
        kinds = [
            kind
            for one in listed
            for kind in ([one["type"]] if isinstance(one.get("type"), str) else one.get("type", ()))
        ]
        return "integer" in kinds or "number" in kinds or any(map(self._takes_numbers, inner))

    def _option(self, key: str) -> str:
        return "--" + self._names.get(key, key).replace("_", "-")

    def _help(self, key: str, about: Mapping[str, Any]) -> str:
        text = " ".join(str(about.get("description", "")).split())
        if key in self._defaults:
            text = f"{_DEFAULT_IN_HELP.sub('', text).rstrip('.')}; default {_written(self._defaults[key])}."
        return text

    def read(
        self, given: Given, settings: Sequence[str], base: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Returns the settings of `base`, changed by options and then by `KEY=VALUE`.

        Raises ValueError with one line for each mistake.
        """
        from longfat.study.keys import place

        found: dict[str, Any] = copy.deepcopy(dict(base or {}))
        origins: dict[str, str] = {}
        self._check_kind(given)
        for key, text in given.items():
            if text is not None:
                value = _value(text, _setting(f"{key}={text}")[1])
                # For a key that takes no plain numbers, a text such as "10" lacks its unit.
                bare = isinstance(value, int | float) and not isinstance(value, bool)
                found[key] = text if bare and not self._takes_numbers(self._properties[key]) else value
                origins[key] = self._option(key)
        for setting in settings:
            key, value = _setting(setting, self._setter)
            key = key.removeprefix(f"{self._section}.")
            if not all(key.split(".")):
                raise ValueError(f'{self._setter}: "{setting}": a part of the key is empty')
            try:
                place(found, key, _value(setting.partition("=")[2].strip(), value))
            except ValueError as error:
                raise ValueError(f"{self._setter}: {key}: {error}") from None
            origins[key] = self._setter
        self._check(found, origins)
        return found

    def _check_kind(self, given: Given) -> None:
        """Raises ValueError for the kind of another family: `longfat send` has no TCP."""
        about = self._properties.get("kind", {})
        schema = self._definitions.get(str(about.get("$ref", "")).rpartition("/")[2], about)
        kinds = [str(one["const"]) for one in schema.get("oneOf", ()) if "const" in one]
        kind = given.get("kind")
        if kinds and kind is not None and kind not in kinds:
            raise ValueError(f"{self._option('kind')}: {kind}: unknown kind; allowed: {', '.join(kinds)}")

    def _check(self, found: Mapping[str, Any], origins: Mapping[str, str]) -> None:
        problems = json.loads(_native.check(self._section, self._whole(json.dumps(found))))
        lines = [self._line(problem["key"], problem["message"], origins) for problem in problems]
        if lines:
            raise ValueError("\n".join(lines))

    def _line(self, key: str, message: str, origins: Mapping[str, str]) -> str:
        """Returns a mistake with its option; a missing key has the option of its table."""
        table = key.rpartition(".")[0]
        for known, option in origins.items():
            related = key.startswith(f"{known}.") or known.startswith(f"{key}.")
            if key == known or related or (table and known.startswith(f"{table}.")):
                inner = key.removeprefix(known).removeprefix(".") if option != self._setter else key
                return ": ".join(part for part in (option, inner, message) if part)
        return ": ".join(part for part in (key, message) if part)


def _setting(text: str, setter: str = "--set") -> tuple[str, Any]:
    """Returns the key and the value of `KEY=VALUE`. Commands without settings do not import the parser."""
    from longfat.study import read_setting

    return read_setting(text, setter)


def _value(text: str, parsed: Any) -> Any:
    """Returns the parsed value, or the text itself for values outside of the vocabulary (dates, NaN)."""
    try:
        json.dumps(parsed, allow_nan=False)
    except (TypeError, ValueError):
        return text
    return parsed


def inline(settings: dict[str, Any]) -> str:
    """Returns settings on one line, as in a study file."""
    return ", ".join(
        f"{key} = {{ {inline(value)} }}" if isinstance(value, dict) else f"{key} = {json.dumps(value)}"
        for key, value in settings.items()
    )


def _written(value: Any) -> str:
    """Returns a default as the user would write it."""
    return f"{{ {inline(value)} }}" if isinstance(value, dict) else str(value)


def _kind(about: Mapping[str, Any]) -> str:
    """Returns the placeholder of an option: the name of its quantity, else of its plain type."""
    listed = [about, *about.get("anyOf", ())]
    reference = next((one["$ref"] for one in listed if "$ref" in one), None)
    if reference is not None:
        name = str(reference.rpartition("/")[2]).upper()
        return name if len(name) <= _LONGEST_KIND else "VALUE"
    kinds = about.get("type", "value")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    return {"boolean": "true|false", "integer": "NUMBER", "string": "TEXT"}.get(kind, "VALUE")
