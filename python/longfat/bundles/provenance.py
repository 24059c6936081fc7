"""The commit and the packages of the software that writes a bundle."""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def commit() -> str | None:
    """Returns the commit of the source tree from which longfat runs; None for an installed package."""
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", folder, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],  # noqa: S607 - whichever git there is
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def requirements() -> list[str]:
    """Returns the versions of the packages that longfat needs, directly or not, as pip reads them."""
    found: dict[str, str] = {}
    wanted = ["longfat"]
    while wanted:
        name = wanted.pop()
        if _key(name) in found:
            continue
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform
        found[_key(name)] = f"{package.name}=={package.version}"
        for line in package.requires or ():
            match = _NAME.match(line)
            if match and "extra ==" not in line:
                wanted.append(match[0])
    return sorted(found.values(), key=str.lower)


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
