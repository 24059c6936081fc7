"""Congestion controllers of the kernel's TCP: its own, and those loaded as BPF.

Vegas and DCTCP are loaded into a kernel without them (sources in `bpf/`), and stay as long as a holder runs.
Each socket chooses its controller: `setsockopt(IPPROTO_TCP, TCP_CONGESTION, controller.kernel_name)`.
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
"""First kernel that removes a controller when its holder exits (BPF links of struct_ops)."""
# The initial user namespace has this number on every Linux (PROC_USER_INIT_INO).
_FIRST_USER_NAMESPACE = 0xEFFFFFFD
_CAPABILITIES = {38: "CAP_PERFMON", 39: "CAP_BPF"}
_CAP_SYS_ADMIN = 21

PARAMETERS: dict[str, dict[str, int]] = {
    "vegas": {"alpha": 2, "beta": 4, "gamma": 1},
    "dctcp": {"shift_g": 4, "alpha_on_init": 1024},
    "reno": {},
}
"""Parameters of each controller that can be loaded, with Linux's defaults."""

# Largest values and their units.
_PACKETS = (10_000, "packets")
_LIMITS = {
    "alpha": _PACKETS,
    "beta": _PACKETS,
    "gamma": _PACKETS,
    "shift_g": (10, "bits"),
    "alpha_on_init": (1024, "units of 1/1024"),
}
# Prefixes of the parameters of Linux's modules.
_PREFIXES = {"dctcp": "dctcp_"}


@dataclass(frozen=True)
class Availability:
    """Whether a controller is available. `reason` is its origin or the obstacle, `remedy` the fix."""

    ok: bool
    reason: str
    remedy: str = ""


class ControllerUnavailableError(Exception):
    """The kernel lacks a controller that cannot be loaded; the text has the reason and the fix."""

    def __init__(self, name: str, availability: Availability) -> None:
        remedy = f": {availability.remedy}" if availability.remedy else ""
        super().__init__(f"{name}: {availability.reason}{remedy}")
        self.availability = availability


@dataclass(frozen=True)
class Controller:
    """An available controller."""

    name: str
    """Requested name."""
    kernel_name: str
    """The kernel's name: the value of TCP_CONGESTION."""
    source: Source
    holder: Holder | None = None
    """The process that keeps it loaded; None for the kernel's own."""

    def verify(self) -> None:
        """Raises HolderError if its holder was killed, which unloads it."""
        if self.holder is not None:
            self.holder.verify()


def listed() -> list[str]:
    """Returns the kernel's names of its available controllers; none on other systems."""
    try:
        return AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def available(
    name: str = "vegas", parameters: Mapping[str, int] | None = None, *, source: Source | None = None
) -> Availability:
    """Returns whether `ensure` with the same arguments would succeed.

    The kernel verifies the program without registering it; the first call may compile it (about 2 s). Raises
    ValueError for unknown parameters.
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
    """Yields a controller of the kernel, loaded for the duration of the context if necessary.

    The kernel's own is preferred; if it is missing or has other parameters, the BPF one is loaded. `source`
    selects one of the two. A loaded controller is removed with the context or this process; sockets that use
    it keep it until they are closed.

    Args:
        name: "vegas", "dctcp" or "reno" (which can be loaded), or any of the kernel's own, such as "cubic".
        parameters: alpha, beta and gamma of Vegas in packets (default 2, 4 and 1, Linux's); shift_g and
            alpha_on_init of DCTCP: g is 1 / 2**shift_g, and alpha has units of 1/1024 (default 4 and 1024).
        source: "kernel" or "bpf"; None for either.

    Raises:
        ControllerUnavailableError: with the reason and the fix. No other controller is substituted.
        ValueError: for unknown parameters, and values out of range.
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
            known = f"allowed: {', '.join(defaults)}" if defaults else "it has none"
            raise ValueError(f"{name} has no parameter {key}: {known}")
        largest, unit = _LIMITS[key]
        if not 0 <= value <= largest:
            raise ValueError(f"{name}: {key} = {value} is out of range: 0 to {largest} {unit}")
    wanted = {**defaults, **(parameters or {})}
    if name == "vegas" and wanted["beta"] < wanted["alpha"]:
        raise ValueError(f"vegas: beta = {wanted['beta']} is too small: at least alpha ({wanted['alpha']})")
    return wanted


def _own(name: str, wanted: Mapping[str, int]) -> Availability:
    """Returns the availability of the kernel's own controller."""
    if name not in listed():
        # Unloaded modules are not listed. Loading one would change the machine permanently.
        remedy = f"modprobe tcp_{name}" if _has_module(name) else ""
        return Availability(False, f"this kernel has no {name}", remedy)
    for key, value in wanted.items():
        path = MODULES / f"tcp_{name}" / "parameters" / f"{_PREFIXES.get(name, '')}{key}"
        # Without this file the parameter is constant.
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
    """Returns the availability of the BPF controller."""
    if name not in build.controllers():
        return Availability(False, f"there is no BPF version of {name}")
    obstacle = _kernel_obstacle() or _privilege_obstacle()
    if obstacle is not None:
        return obstacle
    try:
        check(build.built(), name)
    except build.BuildError as error:
        return Availability(False, str(error), error.remedy)
    except HolderError as error:
        return Availability(False, str(error))
    return Availability(True, f"{name} as BPF, loaded while it is needed")


def _kernel_obstacle() -> Availability | None:
    if sys.platform != "linux":
        return Availability(False, "loading controllers requires Linux")
    release = platform.release()
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return Availability(
            False, f"loading a controller requires Linux {oldest} or newer, this is {release}"
        )
    if not build.KERNEL_TYPES.exists():
        return Availability(
            False,
            f"this kernel does not export its types ({build.KERNEL_TYPES} is missing)",
            "use a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions do",
        )
    return None


def _privilege_obstacle() -> Availability | None:
    effective = int(STATUS.read_text(encoding="utf-8").split("CapEff:")[1].split()[0], 16)
    missing = [name for number, name in _CAPABILITIES.items() if not effective >> number & 1]
    if missing and not effective >> _CAP_SYS_ADMIN & 1:
        return Availability(False, f"loading a controller requires {' and '.join(missing)}", "run it as root")
    if Path("/proc/self/ns/user").stat().st_ino != _FIRST_USER_NAMESPACE:
        return Availability(
            False,
            "loading a controller requires privileges outside of this user namespace",
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
