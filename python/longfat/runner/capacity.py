"""What this machine emulates, measured once a boot."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat import _native
from longfat.interpreter import python_command

_MEASURE = "from longfat import _native; print(_native.capacity())"
_TIMEOUT_S = 60.0
_PUNCTUAL_S = 5e-4
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class MachineCapacity:
    """What this machine holds."""

    packets_per_second: float
    """The highest load over one link that was tried and held; 0 where none was."""
    late_p99_s: float
    """How late packets were at a light load, 99th percentile."""
    is_busy: bool
    """Whether the machine had other work meanwhile: then it may hold more."""


def machine_capacity() -> MachineCapacity | None:
    """The capacity; None where nothing can be emulated.

    It takes up to 5 s the first time after a boot. What a busy machine gives is not kept, nor what one gives
    that was late at a light load: it had other work for a moment, and would be taken for slow until it boots.
    """
    file, key = _file(), {"boot": _boot(), "version": _native.version()}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept.pop("key") == key:
            return MachineCapacity(**kept)
    # A process of its own: it may have to enter a user namespace, for good.
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
        from longfat.files import write_whole

        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps({"key": key, **asdict(found)}).encode())
    return found


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "longfat" / "capacity.json"
