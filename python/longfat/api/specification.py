"""The specification of a single trial, from the arguments of `simulate`, `trace` and `emulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat.study import StudyError
from longfat.study.expressions.settings import SettingError, resolved
from longfat.study.plain import plain, traffic_table
from longfat.study.problems import Problem, show
from longfat.study.tables import Topology, protocol_settings, refuse, table_of

if TYPE_CHECKING:
    from longfat.extensions.controller import CongestionController
    from longfat.study.tables import Path, Protocol

AnyProtocol = "Protocol | type[CongestionController] | Mapping[str, Any] | str"
"""What names a protocol: an object, a controller class, the keys of a study, or a name."""


def specification(
    protocol: Protocol | type[CongestionController] | Mapping[str, Any] | str,
    path: Path | Topology | Mapping[str, Any] | None,
    size: str | None,
    *,
    topology: Topology | Mapping[str, Any] | None = None,
    traffic: Any = (),
    workload: Any = None,
    duration: str | None = None,
    links: Sequence[str] = (),
    seed: SupportsIndex = 1,
    trial: SupportsIndex = 0,
) -> dict[str, Any]:
    """Returns the checked specification of a trial, for the native part.

    Raises:
        ValueError: with the key, the value and what is allowed.
    """
    network = topology if path is None else path
    if network is None or (path is not None and topology is not None):
        raise ValueError("set either path or topology")
    several = topology is not None or isinstance(path, Topology)
    listed: Sequence[Any] = (
        [traffic] if isinstance(traffic, Mapping) or hasattr(traffic, "to_study") else traffic
    )
    flows = [table_of(traffic_table(plain(flow, "traffic")), "traffic") for flow in listed]
    spec: dict[str, Any] = {
        "topology" if several else "path": table_of(network, "topology" if several else "path"),
        "protocol": protocol_settings(protocol),
        "workload": workload_of(size, duration, workload),
    }
    if flows:
        spec["traffic"] = flows
    try:
        spec = resolved(spec).spec
    except SettingError as error:
        raise StudyError("", [Problem(error.key, str(error))]) from None
    for section, settings in spec.items():
        for one in settings if section == "traffic" else [settings]:
            refuse(section, one)  # type: ignore[arg-type]
    if links:
        spec["links"] = [str(plain(link, "links")) for link in ([links] if isinstance(links, str) else links)]
    return spec | {"seed": whole_number(seed, "seed"), "trial": whole_number(trial, "trial")}


def workload_of(size: str | None, duration: str | None, workload: Any) -> dict[str, Any]:
    """Returns the table of a workload: of kind "file" for a size, "bulk" for a duration."""
    if sum(one is not None for one in (size, duration, workload)) != 1:
        raise ValueError('set either size (e.g. "2MB"), duration (e.g. "20s") or workload')
    if size is not None:
        workload = {"kind": "file", "size": size}
    elif duration is not None:
        workload = {"kind": "bulk", "duration": duration}
    return table_of(workload, "workload")


def whole_number(given: Any, name: str) -> int:
    """Returns a seed or the number of a trial as an `int`."""
    number = plain(given, name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise StudyError("", [Problem(name, f"{show(number)}: must be a whole number")])
    if not 0 <= number < 2**64:
        raise StudyError("", [Problem(name, f"{number} is out of range: 0 to 2^64 - 1")])
    return number
