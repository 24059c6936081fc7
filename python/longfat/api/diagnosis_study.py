"""The study of a diagnosis: all controllers of single-path TCP on one path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from longfat.analysis import diagnosis
from longfat.api import buffers
from longfat.kernel import controllers as kernel

if TYPE_CHECKING:
    from longfat.analysis.diagnosis import PathFigures

CONTROLLERS = ("reno", "cubic", "vegas", "westwood", "bbr", "bbr1", "bbr-tolerant")
"""The controllers of single-path TCP that systems offer for bulk data, without DCTCP, which requires switches
that mark."""
_KERNEL_NAMES = {"bbr1": "bbr"}
_OWN = ("bbr", "bbr-tolerant")
"""Controllers that no kernel has: its BBR is version 1."""
_PACKETS = 50_000
_SHORTEST_S, _LONGEST_S = 5.0, 20.0
_SEND_WINDOWS = 4
"""Windows that the send buffer holds, so that it does not limit."""


def study(host: str, path: dict[str, Any], figures: PathFigures) -> dict[str, Any]:
    """Returns the tables of a study of all controllers on a path, for the worlds sim and netns."""
    return {
        "title": f"Controllers on the path to {host}",
        "repeats": 20,
        "show": ["goodput", "rtt_p50", "retransmissions"],
        "path": path,
        "workload": _workload(figures),
        "protocols": [protocol(name, figures) for name in CONTROLLERS],
    }


def protocol(name: str, figures: PathFigures) -> dict[str, Any]:
    """Returns the table of a controller.

    A controller that this machine's kernel lacks runs in longfat's TCP also between kernels.
    """
    settings: dict[str, Any] = {"name": name, "kind": "tcp", "congestion": name}
    if not _in_kernel(name):
        settings["stack"] = "longfat"
    if math.isfinite(figures.window):
        settings |= {
            "receive_buffer": buffers.for_window(figures.window, diagnosis.PAYLOAD),
            "send_buffer": buffers.for_flight(_SEND_WINDOWS * math.ceil(figures.window), diagnosis.PAYLOAD),
        }
    return settings


def _in_kernel(name: str) -> bool:
    listed = kernel.listed()
    return name not in _OWN and (
        not listed or _KERNEL_NAMES.get(name, name) in listed or name in kernel.PARAMETERS
    )


def _workload(figures: PathFigures) -> dict[str, Any]:
    if figures.size is not None:
        return {"kind": "file", "size": f"{int(figures.size)}B"}
    by_packets = _PACKETS * 8 * diagnosis.SEGMENT / figures.rate
    seconds = max(min(by_packets, _LONGEST_S), _SHORTEST_S, 50 * figures.round_trip)
    return {"kind": "bulk", "duration": f"{seconds:.1f}s", "warm_up": f"{seconds / 4:.1f}s"}
