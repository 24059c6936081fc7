"""QUIC with TLS over real sockets: the worlds `relay` and `netns`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runs import run_study

from longfat.study import load_study

WORKLOADS: dict[str, dict[str, Any]] = {
    "file": {"kind": "file", "size": "200kB"},
    "bulk": {"kind": "bulk", "duration": "1s", "warm_up": "200ms"},
    "requests": {"kind": "request-response", "requests": 5, "reconnect": True},
    "streams": {"kind": "request-response", "requests": 3, "streams": 4, "response_size": "5kB"},
    "page": {"kind": "web-page", "objects": [{"size": "10kB"}, {"size": "20kB", "count": 4, "after": 0}]},
}


PATH: dict[str, Any] = {"rate": "20Mbit/s", "delay": "5ms", "queue": "100pkt", "loss": "2%"}


def means(
    folder: Path, world: str, workload: dict[str, Any], *, path: dict[str, Any] = PATH, **protocol: Any
) -> dict[str, float]:
    """Returns the metrics of a trial."""
    study = {
        "title": "QUIC with TLS",
        "worlds": [world],
        "repeats": 1,
        "path": path,
        "workload": workload,
        "protocols": [{"name": "quic", "kind": "quic", **protocol}],
    }
    (cell,) = run_study(load_study(study), folder=folder / world, force=True).cells
    assert cell.n == 1, cell.failures
    return {name: interval.mean for name, interval in cell.metrics.items()}


def test_a_relay_carries_a_file_over_loss(tmp_path: Path) -> None:
    metrics = means(tmp_path, "relay", WORKLOADS["file"])
    # 200 kB at 20 Mbit/s take 80 ms, after at least one round trip of 10 ms.
    assert metrics["completion_s"] > 0.09
    assert metrics["retransmissions"] > 0
    assert metrics["rtt_p50_s"] > 0.01


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("workload", WORKLOADS)
def test_emulated_hosts_carry_every_workload(workload: str, tmp_path: Path) -> None:
    metrics = means(tmp_path, "netns", WORKLOADS[workload])
    assert metrics["rtt_mean_s"] > 0.01
    assert 0 < metrics["goodput_bps"] < 20e6
    expected = {"requests": 5, "streams": 12, "file": 1, "page": 1}
    if workload in expected:
        assert metrics["flows_completed"] == expected[workload], metrics


@pytest.mark.usefixtures("emulated")
def test_early_data_takes_the_time_of_simulation(tmp_path: Path) -> None:
    requests = {"kind": "request-response", "requests": 6, "reconnect": True, "request_size": "400B"}
    # Fits the packet that answers: sent later, it would wait for the pacer.
    requests["response_size"] = "300B"
    path = {"rate": "10Mbit/s", "delay": "20ms"}

    def times(world: str, *, zero_rtt: bool) -> tuple[float, float]:
        folder = tmp_path / str(zero_rtt)
        found = means(folder, world, requests, path=path, certificate_chain="700B", zero_rtt=zero_rtt)
        assert found["flows_completed"] == 6
        return found["fct_p50_s"], found["fct_p99_s"]

    early, simulated = (times(world, zero_rtt=True) for world in ("netns", "sim"))
    assert early[0] == pytest.approx(simulated[0], rel=0.15)
    # The first connection has no ticket and takes two round trips.
    assert early[1] > 0.08
    assert times("netns", zero_rtt=False)[0] > 0.08


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("datagrams", [False, True])
def test_frames_are_in_time_as_in_simulation(tmp_path: Path, *, datagrams: bool) -> None:
    frames = {"kind": "frames", "size": "4kB", "frame_rate": "50/s", "duration": "4s", "deadline": "150ms"}
    path = {"rate": "20Mbit/s", "delay": "20ms", "loss": "5%"}
    # Losses reduce no window.
    protocol = {"datagrams": datagrams, "congestion": {"kind": "fixed", "window": 80}}
    emulated, simulated = (
        means(tmp_path, world, {**frames, "warm_up": "500ms"}, path=path, **protocol)
        for world in ("netns", "sim")
    )
    # One of the three packets of a frame is lost with a probability of 14 %. A retransmission is in time.
    assert emulated["frame_in_time_share"] == pytest.approx(simulated["frame_in_time_share"], abs=0.1)
    assert emulated["frame_delay_p50_s"] == pytest.approx(simulated["frame_delay_p50_s"], rel=0.1)
    assert (emulated["frame_in_time_share"] < 0.93) == datagrams
