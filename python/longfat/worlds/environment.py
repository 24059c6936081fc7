"""The environment of a run."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import sys
import zlib
from pathlib import Path
from typing import Any

from longfat import _native


def environment() -> dict[str, Any]:
    """Returns version, build, kernel, CPU, cores, Python, date (UTC) and the command line of this process."""
    return {
        "longfat": _native.version(),
        "build": build(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cores": available_cores(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "argv": [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else [],
    }


@functools.cache
def build() -> str:
    """Returns a checksum of the native part: builds of one version may have different results."""
    checksum = 0
    with Path(_native.__file__).open("rb") as file:
        while block := file.read(1 << 22):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"


def available_cores() -> int:
    """Returns the number of cores available to this process, which a container may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
