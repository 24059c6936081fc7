"""Whether a person at a prompt or a notebook runs this program."""

from __future__ import annotations

import sys


def is_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def is_interactive() -> bool:
    """Returns whether commands are typed: in a notebook, IPython, or Python's own prompt."""
    return is_notebook() or hasattr(sys, "ps1")
