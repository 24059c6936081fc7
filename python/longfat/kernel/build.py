"""Compiles BPF congestion controllers, once for each kernel and each version of the sources.

The results are stored in the user's cache folder (`$XDG_CACHE_HOME/longfat`, else `~/.cache/longfat`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from longfat.system.user_folders import cache_folder

SOURCES = Path(__file__).parent / "bpf"
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")
"""The kernel's description of its structures (BTF)."""
HOLDER = "holder"
COMPILE_TIMEOUT_S = 120.0

_TOOLS = {"clang": "clang", "cc": "gcc"}
_HEADERS = {"bpf/libbpf.h": "libbpf-dev", "stdio.h": "libc6-dev"}


class BuildError(Exception):
    """The controllers cannot be compiled. The text is the reason, `remedy` the fix or empty."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


def controllers() -> list[str]:
    """Returns the names of the controllers with sources."""
    return sorted(path.name.removesuffix(".bpf.c") for path in SOURCES.glob("*.bpf.c"))


def built() -> Path:
    """Returns the folder with `holder` and an object file `NAME.o` of each controller; compiles if needed.

    Raises BuildError.
    """
    cache = _cache()
    folder = cache / _key()
    if (folder / HOLDER).exists():
        return folder
    _check_tools()
    # Other processes may compile too: each uses a temporary folder, and the first to rename it wins.
    with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as aside:
        fresh = Path(aside) / "fresh"
        fresh.mkdir()
        _compile(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not (folder / HOLDER).exists():
                raise
    return folder


def _cache() -> Path:
    hint = "set XDG_CACHE_HOME to a folder that only you can write to"
    try:
        folder = cache_folder() / "bpf"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # the latter without a home folder
        raise BuildError(f"no cache folder: {error}", hint) from error
    # Programs in it run with the privileges to load programs into the kernel.
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise BuildError(
            f"{folder}: other users may write to it, and its programs run with privileges",
            hint,
        )
    return folder


def _key() -> str:
    digest = hashlib.sha256()
    release = f"{platform.release()} {platform.machine()} {_definitions()}"
    digest.update(release.encode())
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]


def _definitions() -> list[str]:
    """Returns definitions for the compiler about this kernel, which the loader cannot look up."""
    # Since Linux 7.1 a separate operation signals the start of a flight.
    separate = b"\0cwnd_event_tx_start\0" in KERNEL_TYPES.read_bytes()
    return ["-DCWND_EVENT_TX_START"] if separate else []


def _check_tools() -> None:
    missing = {tool: package for tool, package in _TOOLS.items() if shutil.which(tool) is None}
    missing |= {header: package for header, package in _HEADERS.items() if not _has_header(header)}
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise BuildError(
            f"to compile it, {_listed(list(missing))} {'is' if len(missing) == 1 else 'are'} missing",
            f"apt install {packages} (Debian, Ubuntu)",
        )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _has_header(header: str) -> bool:
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        return Path("/usr/include", header).exists()
    return _run([compiler, "-E", "-x", "c", "-"], f"#include <{header}>\n").returncode == 0


def _compile(folder: Path) -> None:
    # The instruction set of version 3 has 32-bit jumps; kernels have had it since Linux 5.1.
    bpf = ["clang", "-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", *_definitions()]
    for name in controllers():
        _must([*bpf, "-c", str(SOURCES / f"{name}.bpf.c"), "-o", str(folder / f"{name}.o")])
    native = ["cc", "-O2", "-D_GNU_SOURCE", str(SOURCES / "holder.c"), "-o", str(folder / HOLDER), "-lbpf"]
    _must(native)


def _must(command: list[str]) -> None:
    done = _run(command)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise BuildError(f"{command[0]} fails: {lines[0].strip() if lines else 'without a message'}")


def _run(command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
            check=False,
            # Messages are searched for "error".
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} fails: {error}") from error
