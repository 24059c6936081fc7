"""The capacity of this machine for emulated packets, measured once per boot."""

from __future__ import annotations

import contextlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat import _native
from longfat.system.interpreter import python_command
from longfat.system.user_folders import cache_folder

FILE = "capacity.json"
_MEASURE = "from longfat import _native; print(_native.capacity())"
_TIMEOUT_S = 60.0
_PUNCTUAL_S = 5e-4
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class MachineCapacity:
    """Load and delay error of emulated packets."""

    packets_per_second: float
    """Highest tested load over one link without excessive delay; 0 for none."""
    late_p99_s: float
    """Delay error at a light load in s, 99th percentile."""
    is_busy: bool
    """Whether other programs loaded the machine meanwhile; then its capacity may be higher."""


def machine_capacity() -> MachineCapacity | None:
    """Returns the capacity, None if this machine cannot emulate networks.

    The first call after a boot takes up to 5 s; later ones read a file. The result of a busy machine, or of
    one with a large delay error at a light load, is not stored: it would count as slow until the next boot.
    """
    file, key = cache_folder() / FILE, {"boot": _boot(), "version": _native.version()}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept.pop("key") == key:
            return MachineCapacity(**kept)
    # A separate process, because it may enter a user namespace permanently.
    done = subprocess.run(
        python_command("-c", _MEASURE),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        return None
    found = MachineCapacity(**json.loads(done.stdout))
    if not found.is_busy and found.late_p99_s <= _PUNCTUAL_S and key["boot"]:
        from longfat.system.files import write_whole

        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps({"key": key, **asdict(found)}).encode())
    return found


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
