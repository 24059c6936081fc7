"""The environment of a run."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO

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
    """Returns the identity of the native part: builds of one version may have different results.

    It is the build ID of an ELF file, the linker's checksum of its content, or else a checksum of the file.
    """
    checksum = 0
    with Path(_native.__file__).open("rb") as file:
        if identity := build_id(file):
            return identity
        file.seek(0)
        while block := file.read(1 << 22):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"


_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3


def build_id(file: BinaryIO) -> str | None:
    """Returns the build ID of a 64-bit ELF file in hexadecimal; None for other files, and without one."""
    header = file.read(64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return None
    (table,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
    file.seek(table)
    segments = file.read(size * count)
    for number in range(len(segments) // size if size >= 56 else 0):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", segments, number * size)
        if kind != _PT_NOTE:
            continue
        file.seek(offset)
        notes = file.read(length)
        place = 0
        while place + 12 <= len(notes):
            name, content, note = struct.unpack_from("<III", notes, place)
            start = place + 12 + (name + 3 & ~3)
            if note == _NT_GNU_BUILD_ID and notes[place + 12 : place + 16] == b"GNU\0":
                return notes[start : start + content].hex()
            place = start + (content + 3 & ~3)
    return None


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
