"""Connections under controllers given to the kernel, in namespaces of their own."""

from __future__ import annotations

import os
import signal
import time

import pytest
from tests.kernel.namespaces import in_namespace, map_exists
from tests.kernel.path import Conditions, Figures, measure
from tests.kernel.traffic import Sink, chosen, connected, transfer
from tests.waiting import PATIENCE_S, undisturbed

from longfat.kernel.controllers import Controller, ensure, listed

pytestmark = pytest.mark.usefixtures("_bpf")

SIZE = 4_000_000
SHARED = Conditions(rate=20e6, delay=0.010, queue=100, seconds=6.0, settle=3.0)
"""33 packets fill the path; the queue holds three times as many."""


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("name", ["vegas", "reno"])
def test_connections_run_under_it(name: str) -> None:
    with ensure(name, source="bpf") as controller:
        assert in_namespace(transfer, controller.kernel_name, SIZE) == (controller.kernel_name, SIZE)


def _outlives(name: str, holder: int, number: int) -> tuple[str, int, bool]:
    """A connection whose controller is taken back on the way."""
    sink = Sink("127.0.0.1")
    with connected(name, sink.address) as connection:
        connection.sendall(bytes(SIZE))
        os.kill(holder, signal.SIGKILL)
        end = time.monotonic() + PATIENCE_S
        while name in listed() and time.monotonic() < end:
            time.sleep(0.01)
        assert name not in listed()
        connection.sendall(bytes(SIZE))
        return chosen(connection), sink.received, map_exists(number)


@pytest.mark.usefixtures("_namespaces")
def test_a_connection_keeps_the_controller_that_it_has() -> None:
    with ensure("vegas", source="bpf") as controller:
        holder = controller.holder
        assert holder is not None
        name, _, exists = in_namespace(_outlives, controller.kernel_name, holder.pid, holder.map)
        assert name == controller.kernel_name
        assert exists
        assert is_gone(controller), "it goes with the last connection"


def measured(controller: Controller) -> Figures:
    return in_namespace(measure, controller.kernel_name, SHARED)


def is_gone(controller: Controller) -> bool:
    """Whether the kernel has given it up; it does so a moment after the last connection."""
    assert controller.holder is not None
    end = time.monotonic() + PATIENCE_S
    while map_exists(controller.holder.map) and time.monotonic() < end:
        time.sleep(0.01)
    return not map_exists(controller.holder.map)


@pytest.mark.usefixtures("_tun")
def test_vegas_keeps_the_queue_short() -> None:
    """Brakmo and Peterson, section 3.2: alpha to beta packets wait, and so none is lost."""
    with ensure("vegas", source="bpf") as controller:
        few = undisturbed(
            lambda: measured(controller),
            lambda figures: figures.goodput > 0.8 * SHARED.rate and figures.queued < 12,
        )
    with ensure("vegas", {"alpha": 30, "beta": 34}, source="bpf") as controller:
        many = undisturbed(
            lambda: measured(controller), lambda figures: few.queued + 15 < figures.queued < 60
        )
    assert is_gone(controller)
    assert few.goodput > 0.8 * SHARED.rate
    assert few.retransmissions == 0
    # How much the relay's own delays add to 2..4 depends on how busy the machine is.
    assert 1 < few.queued < 12
    assert few.queued + 15 < many.queued < 60, "what it is told to keep, it keeps"
    assert few.rtt_ms < many.rtt_ms


@pytest.mark.usefixtures("_tun")
def test_reno_through_bpf_is_the_kernels() -> None:
    with ensure("reno", source="kernel") as kernel, ensure("reno", source="bpf") as bpf:
        own, given = undisturbed(
            lambda: (measured(kernel), measured(bpf)),
            lambda both: (
                all(one.goodput > 0.8 * SHARED.rate for one in both)
                and both[1].queued == pytest.approx(both[0].queued, rel=0.15)
                and both[1].rtt_ms == pytest.approx(both[0].rtt_ms, rel=0.15)
            ),
        )
    for figures in (own, given):
        assert figures.goodput > 0.8 * SHARED.rate
        assert figures.dropped > 0, "it fills the queue"
    assert given.queued == pytest.approx(own.queued, rel=0.15)
    assert given.rtt_ms == pytest.approx(own.rtt_ms, rel=0.15)
