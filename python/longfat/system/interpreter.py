"""Command lines of Python child processes."""

from __future__ import annotations

import sys


def python_command(*arguments: str) -> list[str]:
    """Returns the command line that runs this interpreter with `arguments`.

    `-P` (Python 3.11) keeps the current folder off the import path. With `-m` and `-c` it comes first
    otherwise, and a `json.py` there would run with this process's privileges.

    >>> python_command("-m", "longfat.worlds._endpoint", "emulate")[1:]
    ['-P', '-m', 'longfat.worlds._endpoint', 'emulate']
    """
    return [sys.executable, "-P", *arguments]
