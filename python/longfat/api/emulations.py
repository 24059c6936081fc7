"""`emulate`: one trial between real kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat.api.specification import specification
from longfat.api.trials import TransferError, Trial

if TYPE_CHECKING:
    from longfat.study.tables import Path, Topology


def emulate(
    protocol: Any,
    path: Path | Topology | Mapping[str, Any] | None = None,
    size: str | None = None,
    *,
    topology: Topology | Mapping[str, Any] | None = None,
    traffic: Any = (),
    workload: Any = None,
    duration: str | None = None,
    links: Sequence[str] = (),
    seed: SupportsIndex = 1,
    trial: SupportsIndex = 0,
) -> Trial:
    """Runs one trial between Linux kernels in network namespaces, in wall time (Linux).

    The parameters are those of `simulate`, and the random losses are those of the simulated trial.

    Returns:
        The trial's metrics in SI units.

    Raises:
        ValueError: with the key, the value and what is allowed.
        TransferError: if the transfer failed, or this machine lacks something (`longfat doctor`).
    """
    from longfat.runner.tracing import length
    from longfat.worlds.netns import Netns
    from longfat.worlds.processes import TIMEOUT_FACTOR, TIMEOUT_MARGIN_S, EndpointError

    spec = specification(
        protocol,
        path,
        size,
        topology=topology,
        traffic=traffic,
        workload=workload,
        duration=duration,
        links=links,
        seed=seed,
        trial=trial,
    )
    executor = Netns(1)
    try:
        record = executor.measure(spec, length(spec) * TIMEOUT_FACTOR + TIMEOUT_MARGIN_S)
    except EndpointError as error:
        raise TransferError(str(error)) from None
    finally:
        executor.close()
    if record.metrics is None:
        raise TransferError(str(record.error))
    return Trial(dict(record.metrics), spec, [dict(column) for column in record.flows])
