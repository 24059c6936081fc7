"""Mistakes in parameters of functions, under the names of a command's options."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand

from longfat.system.parameters import ParameterError


class NamingCommand(TyperCommand):
    """Reports mistakes in parameters of functions under the names of its own options and arguments."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command. Raises ValueError instead of ParameterError."""
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            names = {one.name: _name(one) for one in self.params}
            text = error.named(lambda name: names.get(name) or f"--{name.replace('_', '-')}")
            raise ValueError(text) from error


def _name(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return parameter.metavar or str(parameter.name).upper()
    return str(parameter.opts[0])
