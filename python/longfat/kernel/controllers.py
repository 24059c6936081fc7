"""Congestion controllers of the kernel's TCP: those that it has, and those that it can be given.

A kernel without Vegas gets it as BPF (`bpf/` in the sources), for as long as a process of ours holds it. A
controller is chosen socket by socket: `setsockopt(IPPROTO_TCP, TCP_CONGESTION, controller.kernel_name)`.
"""

from __future__ import annotations

import contextlib
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longfat.kernel import build
from longfat.kernel.holder import Holder, HolderError, check

Source = Literal["kernel", "bpf"]

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/sys/module")
STATUS = Path("/proc/self/status")
OLDEST_KERNEL = (6, 4)
"""Since then the kernel takes a controller back by itself when its holder dies (BPF links of struct_ops)."""
MOST_PACKETS = 10_000

# The machine's own user namespace has this number on every Linux (PROC_USER_INIT_INO).
_FIRST_USER_NAMESPACE = 0xEFFFFFFD
_CAPABILITIES = {38: "CAP_PERFMON", 39: "CAP_BPF"}
_CAP_SYS_ADMIN = 21

PARAMETERS: dict[str, dict[str, int]] = {"vegas": {"alpha": 2, "beta": 4, "gamma": 1}, "reno": {}}
"""What each controller that we bring can be told, with Linux's defaults."""


@dataclass(frozen=True)
class Availability:
    """Whether a controller can be had here. `reason` says where from, or why not, and `remedy` what to do."""

    ok: bool
    reason: str
    remedy: str = ""


class ControllerUnavailableError(Exception):
    """The kernel has no such controller and cannot be given it; the text says why and what to do."""

    def __init__(self, name: str, availability: Availability) -> None:
        remedy = f": {availability.remedy}" if availability.remedy else ""
        super().__init__(f"{name}: {availability.reason}{remedy}")
        self.availability = availability


@dataclass(frozen=True)
class Controller:
    """A controller that sockets can choose now."""

    name: str
    """As it was asked for."""
    kernel_name: str
    """As the kernel calls it: the value of TCP_CONGESTION."""
    source: Source
    holder: Holder | None = None
    """The process that holds it in the kernel; None for the kernel's own."""

    def verify(self) -> None:
        """Raises HolderError where the kernel has it no longer, because its holder was killed."""
        if self.holder is not None:
            self.holder.verify()


def listed() -> list[str]:
    """The controllers that the kernel offers now, as it calls them; none where this is not Linux."""
    try:
        return AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def available(
    name: str = "vegas", parameters: Mapping[str, int] | None = None, *, source: Source | None = None
) -> Availability:
    """Whether `ensure` with the same arguments would give a controller; found out by trying, without a trace.

    Compiles at the first call where it must (about two seconds), and has the kernel verify the program
    without registering it. Raises ValueError on parameters that the controller does not have.
    """
    wanted = _checked(name, parameters)
    if source == "bpf":
        return _given(name)
    own = _own(name, wanted)
    if own.ok or source == "kernel":
        return own
    given = _given(name)
    if given.ok:
        return given
    return Availability(False, f"{own.reason}; {given.reason}", given.remedy or own.remedy)


@contextlib.contextmanager
def ensure(
    name: str, parameters: Mapping[str, int] | None = None, *, source: Source | None = None
) -> Iterator[Controller]:
    """Gives the kernel a controller for as long as the context lasts, or finds that it has it.

    The kernel's own goes first; where it has none, or has it with other parameters than those wanted, ours
    follows. `source` asks for one of the two. What is held ends with the context or with this process,
    however that ends; sockets that use it by then keep it until they are closed.

    Args:
        name: "vegas" or "reno" (which we can bring), or whatever the kernel offers, such as "cubic".
        parameters: of Vegas alpha, beta and gamma, in packets (default 2, 4 and 1, Linux's).
        source: "kernel" for its own alone, "bpf" for ours alone.

    Raises:
        ControllerUnavailableError: the machine cannot; the text says why and what to do. Nothing ever takes
            the place of what was asked for.
        ValueError: parameters that the controller does not have or that are out of range.
    """
    wanted = _checked(name, parameters)
    if source != "bpf" and _own(name, wanted).ok:
        yield Controller(name, name, "kernel")
        return
    state = available(name, parameters, source=source)
    if not state.ok:
        raise ControllerUnavailableError(name, state)
    with Holder(build.built(), name, wanted) as holder:
        yield Controller(name, holder.kernel_name, "bpf", holder)


def _checked(name: str, parameters: Mapping[str, int] | None) -> dict[str, int]:
    defaults = PARAMETERS.get(name, {})
    for key, value in (parameters or {}).items():
        if key not in defaults:
            known = f"it has {', '.join(defaults)}" if defaults else "it has none"
            raise ValueError(f"{name} has no parameter {key}: {known}")
        if not 0 <= value <= MOST_PACKETS:
            raise ValueError(f"{name}: {key} is {value}, allowed are 0 to {MOST_PACKETS} packets")
    wanted = {**defaults, **(parameters or {})}
    if name == "vegas" and wanted["beta"] < wanted["alpha"]:
        raise ValueError(
            f"vegas: beta is {wanted['beta']} and alpha {wanted['alpha']}: beta must not be less than alpha"
        )
    return wanted


def _own(name: str, wanted: Mapping[str, int]) -> Availability:
    """The kernel's own controller of this name."""
    if name not in listed():
        # A module that is not loaded is on no list, and loading one is not ours to do: it would stay.
        remedy = f"modprobe tcp_{name}" if _has_module(name) else ""
        return Availability(False, f"this kernel offers no {name}", remedy)
    for key, value in wanted.items():
        path = MODULES / f"tcp_{name}" / "parameters" / key
        # No such file: nobody can have changed it.
        real = int(path.read_text(encoding="ascii")) if path.exists() else PARAMETERS[name][key]
        if real != value:
            return Availability(False, f"this kernel's {name} has {key} = {real} instead of {value}")
    return Availability(True, f"this kernel's own {name}")


def _has_module(name: str) -> bool:
    index = Path("/lib/modules") / platform.release() / "modules.dep"
    try:
        return f"/tcp_{name}.ko" in index.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _given(name: str) -> Availability:
    """Ours, as BPF."""
    if name not in build.controllers():
        return Availability(False, f"there is no {name} to give to the kernel")
    obstacle = _kernel_obstacle() or _privilege_obstacle()
    if obstacle is not None:
        return obstacle
    try:
        check(build.built(), name)
    except build.BuildError as error:
        return Availability(False, str(error), error.remedy)
    except HolderError as error:
        return Availability(False, str(error))
    return Availability(True, f"{name} as BPF, given to the kernel while it is needed")


def _kernel_obstacle() -> Availability | None:
    if sys.platform != "linux":
        return Availability(False, "controllers can be given to Linux alone")
    release = platform.release()
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return Availability(False, f"Linux {oldest} or newer is needed to give it one, this is {release}")
    if not build.KERNEL_TYPES.exists():
        return Availability(
            False,
            f"this kernel does not tell its types ({build.KERNEL_TYPES} is missing)",
            "use a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions do",
        )
    return None


def _privilege_obstacle() -> Availability | None:
    effective = int(STATUS.read_text(encoding="utf-8").split("CapEff:")[1].split()[0], 16)
    missing = [name for number, name in _CAPABILITIES.items() if not effective >> number & 1]
    if missing and not effective >> _CAP_SYS_ADMIN & 1:
        return Availability(
            False, f"giving the kernel a controller needs {' and '.join(missing)}", "run it as root"
        )
    if Path("/proc/self/ns/user").stat().st_ino != _FIRST_USER_NAMESPACE:
        return Availability(
            False,
            "giving the kernel a controller needs privileges outside of this user namespace",
            "run it as root of the machine",
        )
    return None


__all__ = [
    "PARAMETERS",
    "Availability",
    "Controller",
    "ControllerUnavailableError",
    "HolderError",
    "available",
    "ensure",
    "listed",
]
