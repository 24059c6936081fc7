"""Mistakes in the parameters of a function, which the command line reports under the names of its options."""

from __future__ import annotations

import re
from collections.abc import Callable

_NAME = re.compile(r"\{([a-z_]+)\}")


class ParameterError(ValueError):
    """A mistake in a parameter of a function. Names of parameters in the message are in braces.

    >>> print(ParameterError("timeout", "1h is out of range"))
    timeout: 1h is out of range
    >>> error = ParameterError("", "set either {size} or {packets}")
    >>> print(error, "|", error.named(lambda name: f"--{name}"))
    set either size or packets | set either --size or --packets
    """

    def __init__(self, parameter: str, message: str) -> None:
        self.parameter = parameter
        self.message = message
        super().__init__(self.named(str))

    def named(self, name: Callable[[str], str]) -> str:
        """Returns the message with other names of its parameters."""
        text = _NAME.sub(lambda match: name(match[1]), self.message)
        return f"{name(self.parameter)}: {text}" if self.parameter else text
