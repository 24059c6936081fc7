"""Cells, Wi-Fi, address translation, CAKE's ACK filter, one-way delays and PCC Vivace in simulated trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import longfat as lf

TRACE = Path(__file__).parents[2] / "docs" / "cookbook" / "mobile.trace"
BULK = {"kind": "bulk", "duration": "6s", "warm_up": "1s"}
CUBIC = {"kind": "tcp", "congestion": "cubic"}


def metrics(
    network: dict[str, Any], protocol: dict[str, Any], workload: dict[str, Any], **others: Any
) -> Any:
    return lf.simulate(**network, protocol=protocol, workload=workload, seed=1, **others).metrics


def test_a_wifi_channel_has_the_rate_of_its_model() -> None:
    path = {"wifi": {"rate": "144.4Mbit/s", "frames": 16}, "delay": "2ms"}
    found = metrics({"path": path}, {"kind": "udp", "mss": "1472B"}, BULK | {"rate": "160Mbit/s"})
    # 16 packets of 1500 bytes in 165.5 us + (12352 * 16 + 464) / 144.4 us.
    assert abs(found["throughput_bps"] / 124.9e6 - 1) < 0.015
    assert "utilisation" not in found


def test_a_cell_with_one_user_is_a_link_with_its_trace() -> None:
    def goodput(capacity: dict[str, Any]) -> float:
        path = {"delay": "20ms", "queue": "100pkt", "reverse": {"rate": "10Mbit/s"}} | capacity
        return float(metrics({"path": path}, CUBIC, BULK)["goodput_bps"])

    assert goodput({"cell": {"traces": [str(TRACE)]}}) == goodput({"trace": str(TRACE)})


def test_users_of_a_cell_share_its_time() -> None:
    cell = {"traces": [str(TRACE)], "scheduler": "round-robin"}
    topology = {
        "kind": "dumbbell",
        "pairs": 2,
        "bottleneck": {"cell": cell, "delay": "20ms", "queue": "100pkt"},
    }
    found = metrics({"topology": topology}, CUBIC, BULK)
    assert found["jain"] > 0.98


def test_tcp_stalls_behind_a_translator_that_rebinds() -> None:
    path = {"rate": "10Mbit/s", "delay": "20ms", "queue": "2BDP", "nat": {"rebind": ["3s"]}}
    workload = {"kind": "bulk", "duration": "10s"}
    tcp = metrics({"path": path}, CUBIC, workload)
    assert tcp["goodput_bps"] < 3.1e6
    assert tcp["timeouts"] >= 3
    assert tcp["nat_drops"] > 0
    arq = metrics({"path": path}, {"kind": "selective-repeat", "window": 200}, workload)
    assert arq["goodput_bps"] > 7e6
    without = metrics({"path": {"rate": "10Mbit/s", "delay": "20ms"}}, CUBIC, workload)
    assert "nat_drops" not in without


def test_the_ack_filter_speeds_up_an_asymmetric_link() -> None:
    def goodput(ack_filter: bool) -> float:
        queue = {"kind": "cake", "ack_filter": ack_filter}
        path = {"rate": "50Mbit/s", "delay": "15ms", "reverse": {"rate": "0.5Mbit/s", "queue": queue}}
        return float(
            metrics({"path": path}, CUBIC, BULK | {"duration": "10s", "warm_up": "4s"})["goodput_bps"]
        )

    assert goodput(True) > 1.2 * goodput(False)
    assert goodput(True) > 45e6


def test_one_way_delays_are_those_of_the_path() -> None:
    udp = {"kind": "udp", "mss": "160B"}
    found = metrics({"path": {"rate": "10Mbit/s", "delay": "10ms"}}, udp, BULK | {"rate": "64kbit/s"})
    # 188 bytes take 0.15 ms.
    for name in ("mean", "p50", "p95", "p99"):
        assert abs(found[f"one_way_delay_{name}_s"] - 0.01015) < 1e-4
    assert "one_way_delay_p50_s" not in metrics({"path": {"rate": "10Mbit/s"}}, CUBIC, BULK)


def test_vivace_uses_the_link_with_a_short_queue_and_shares_it() -> None:
    path = {"rate": "50Mbit/s", "delay": "20ms", "queue": "1000pkt"}
    workload = {"kind": "bulk", "duration": "30s", "warm_up": "10s", "flows": 2, "start_jitter": "1s"}
    found = metrics({"path": path}, {"kind": "tcp", "congestion": "vivace"}, workload)
    assert found["utilisation"] > 0.88
    assert found["jain"] > 0.95
    # The buffer is 240 ms long, and nearly empty for most of the time.
    assert found["queueing_delay_p50_s"] < 0.005
    assert found["queueing_delay_p99_s"] < 0.1
