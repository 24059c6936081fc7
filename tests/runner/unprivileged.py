"""Starts longfat as somebody who may nothing: another user where the tests run as root, else as they run."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NOBODY = 65534
ROOT = Path(__file__).parents[2]


@functools.cache
def interpreter() -> str | None:
    """A Python that everybody may start, with longfat in it; None where there is none (root's own folder)."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3"):
        try:
            done = _run([candidate, "-c", "import longfat._native, polars, typer"], Path("/"), 60)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


def longfat(folder: Path, *arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs `longfat` in a folder that everybody may write to."""
    python = interpreter()
    assert python is not None
    return _run([python, "-m", "longfat", *map(str, arguments)], folder, timeout)


def _run(command: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    places = [str(ROOT / "python"), *(path for path in sys.path if path.endswith("-packages"))]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": os.pathsep.join(places)}
    become: dict[str, Any] = {}
    if os.geteuid() == 0:
        become = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **become,
    )
