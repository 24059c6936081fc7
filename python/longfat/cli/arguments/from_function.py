"""Options of a command from signatures and docstrings: its own, and that of the function that it calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, SupportsIndex, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from longfat.cli.arguments.extension import Command, extended

CALL = "call"
"""The parameter of a command that receives the function with its options."""
_PROGRESS = "progress"
_KINDS: dict[Any, Any] = {SupportsIndex: int}
"""Types on the command line that differ from those of functions."""
_ARGS = re.compile(r"^Args:\n(.*?)(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
_ARG = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_QUOTED_WORD = re.compile(r'(?<!= )"(\S+?)"')
_END = re.compile(r"(?=; by default .+\.$|\.$)")
_DEFAULT = re.compile(r"; by default (.+)\.$")


def command(**changed: Any) -> Callable[[Command], Command]:
    """Returns a decorator that declares the parameters in the section `Args` of a command's docstring.

    Positional parameters become arguments, and the others options: each with its default, the first of its
    types and its text. The help of the command ends before the section.

    Args:
        changed: What the signature does not have, by parameter: a `typer.Option` or `typer.Argument` with
            another name, a placeholder or limits; or an annotated type.
    """

    def described(command: Command) -> Command:
        texts = descriptions(command)
        own = [one for name, one in inspect.signature(command).parameters.items() if name in texts]
        annotations = {one.name: one.annotation for one in _parameters(command, own, changed)}
        command.__annotations__ |= annotations
        command.__doc__ = _ARGS.sub("", inspect.getdoc(command) or "")
        return command

    return described


def command_of(
    function: Callable[..., Any], /, *, without: Sequence[str] = (), **changed: Any
) -> Callable[[Command], Command]:
    """As `command`, and adds the parameters of a function to the command.

    The command's parameter `call` receives the function with the values on the command line, and with
    `progress` if it has any.

    Args:
        function: A function of the Python API.
        without: Parameters that the command passes itself.
        changed: As for `command`, for the parameters of both.
    """
    signature = inspect.signature(function)
    always = {_PROGRESS: True} if _PROGRESS in {*signature.parameters} - {*without} else {}
    left_out = {*without, *always}
    chosen = [one for name, one in signature.parameters.items() if name not in left_out]
    added = list(_parameters(function, chosen, changed))

    def collect(values: dict[str, Any]) -> partial[Any]:
        return partial(function, **values, **always)

    described = command(**changed)
    return lambda own: extended(described(own), CALL, added, collect)


def _parameters(
    function: Callable[..., Any], chosen: Sequence[inspect.Parameter], changed: dict[str, Any]
) -> Iterator[inspect.Parameter]:
    """Yields the command's parameters for those of a function."""
    texts = descriptions(function)
    names = {one.name: _name(one, changed.get(one.name)) for one in chosen}
    first = {one.name: one.annotation.partition(" | ")[0] for one in chosen}
    types = get_type_hints(SimpleNamespace(__annotations__=first), vars(import_module(function.__module__)))
    for one in chosen:
        kind: Any = _KINDS.get(types[one.name], types[one.name])
        default: Any = one.default
        is_option = one.kind is inspect.Parameter.KEYWORD_ONLY
        info = changed.get(one.name) or (typer.Option() if is_option else typer.Argument())
        if get_origin(info) is Annotated:
            kind, info = get_args(info)
            default = None if default is one.empty and _is_optional(kind) else default
        elif kind is bool and default is False and info.default is ...:
            info.default = names[one.name]  # Without its name, an option has a second one that negates it.
        elif kind in {str, Path} and info.metavar is None and first[one.name] not in {"str", "Path"}:
            info.metavar = first[one.name].upper()
        if info.help is None:
            is_list = isinstance(info, OptionInfo) and list[str] in {kind, *get_args(kind)}
            info.help = _help(texts[one.name], names, is_list=is_list)
        kind = kind if default is not None else kind | None
        annotation = Annotated[kind, info]
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _is_optional(kind: Any) -> bool:
    return type(None) in get_args(kind)


def _name(one: inspect.Parameter, changed: Any) -> str:
    """Returns the name of a parameter on the command line."""
    info = get_args(changed)[1] if get_origin(changed) is Annotated else changed
    if isinstance(info, ArgumentInfo) or (info is None and one.kind is not inspect.Parameter.KEYWORD_ONLY):
        return getattr(info, "metavar", None) or one.name.upper()
    declared = info.default if info is not None else None
    return declared if isinstance(declared, str) else f"--{one.name.replace('_', '-')}"


def descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Returns the text of each parameter in a function's docstring."""
    section = _ARGS.search(inspect.getdoc(function) or "")
    found = _ARG.findall(section[1]) if section else []
    return {name: " ".join(text.split()) for name, text in found}


def _help(text: str, names: dict[str, str], *, is_list: bool = False) -> str:
    """Returns a docstring's text as help of an option, with the options of other parameters.

    >>> _help('Sizes, e.g. "8,100"; by default 56, or 1 with `flood`.', {"flood": "--flood"})
    'Sizes, e.g. 8,100.  [default: 56, or 1 with --flood]'
    >>> _help("Worlds; by default the study's.", {}, is_list=True)
    "Worlds; repeatable.  [default: the study's]"
    """
    text = _END.sub("; repeatable", text, count=1) if is_list else text
    text = _CODE.sub(lambda match: names.get(match[1], match[1]), text)
    return _DEFAULT.sub(r".  [default: \1]", _QUOTED_WORD.sub(r"\1", text))
