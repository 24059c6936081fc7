"""Commands whose parameters come from elsewhere: from a function, or from a section of the vocabulary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])


def extended(
    command: Command, place: str, added: Sequence[inspect.Parameter], collect: Callable[[dict[str, Any]], Any]
) -> Command:
    """Returns a command with more parameters in the place of one.

    The replaced parameter receives what `collect` returns for the values of the added ones.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for own in signature.parameters.values():
        parameters += added if own.name == place else [own.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    def run(**arguments: Any) -> None:
        values = {parameter.name: arguments.pop(parameter.name) for parameter in added}
        command(**arguments, **{place: collect(values)})

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run  # type: ignore[return-value]
