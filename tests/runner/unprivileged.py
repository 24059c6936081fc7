"""Starts longfat without privileges: as another user if the tests run as root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import longfat as package

NOBODY = 65534
HELPER = Path(__file__).with_name("as_nobody.py")


def longfat(folder: Path, *arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs `longfat` in a folder that all users may write to."""
    command = [sys.executable, "-P", "-m", "longfat", *map(str, arguments)]
    if os.geteuid() == 0:
        # The virtual environment and its base interpreter are in different folders.
        places = {sys.prefix, sys.base_prefix, str(Path(str(package.__file__)).parents[2])}
        needed = sorted({str(Path(place).resolve()) for place in places})
        command = [sys.executable, "-P", str(HELPER), str(NOBODY), *needed, "--", *command]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
