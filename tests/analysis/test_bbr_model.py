"""The closed form of BBR's share (Ware et al., IMC 2019), its definition, and the simulator."""

from __future__ import annotations

import json
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat import _native
from longfat.analysis.prediction import predict
from longfat.analysis.theory import bbr

Spec = dict[str, Any]


def spec(congestion: Any = "bbr1", rival: str = "cubic", flows: int = 1, **path: Any) -> Spec:
    return {
        "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "266pkt", **path},
        "protocol": {"kind": "tcp", "congestion": congestion},
        "workload": {"kind": "bulk", "flows": flows, "duration": "500s", "warm_up": "100s"},
        "traffic": [
            {
                "name": "rival",
                "protocol": {"kind": "tcp", "congestion": rival},
                "workload": {"kind": "bulk"},
            }
        ],
    }


@given(st.floats(10, 1e4), st.floats(1.1, 64), st.integers(1, 32))
def test_the_flows_fill_their_cap(pipe: float, depth: float, flows: int) -> None:
    """Equation 8: twice the measured rate times the measured round trip is the part of queue and pipe."""
    buffer = depth * pipe
    share = bbr.limited_share(pipe, buffer, flows)
    if share < 1:
        round_trip = ((1 - share) * buffer + 4 * flows) / pipe + 1  # in units of the path's
        assert 2 * share * pipe * round_trip == pytest.approx(share * (buffer + pipe))
    else:
        assert 2 * (4 * flows + pipe) >= (buffer + pipe) * (1 - 1e-12)


def test_half_of_the_link_in_a_very_deep_queue() -> None:
    """The paper's simple model: in a queue much longer than the path, without ProbeRTT."""
    assert bbr.limited_share(100, 1e7) == pytest.approx(0.5, abs=1e-4)


def test_a_prediction_has_the_numbers_of_its_trial() -> None:
    # 10 Mbit/s of 1500 bytes for 40 ms are 33.3 packets: p = 1/2 - 33.3 / 532 - 4 / 266 = 0.4223.
    # ProbeRTT: (266 / 833.3 + 0.2 + 0.04) / 10 = 0.05592.
    found = predict(spec(), "share")
    assert found.value == pytest.approx((1 - 0.42230) * (1 - 0.05592), abs=1e-4)
    slow = predict(spec({"kind": "bbr1", "probe_rtt_interval": "5s"}), "share")
    assert slow.value == pytest.approx((1 - 0.42230) * (1 - 2 * 0.05592), abs=1e-4)
    two = predict(spec(flows=2), "share")
    assert two.value == pytest.approx((1 - 0.42230 + 4 / 266) * (1 - 0.05592), abs=1e-4)


def test_version_3_has_the_form_of_version_1_but_no_prediction() -> None:
    later = predict(spec("bbr"), "share")
    assert later.value is None
    assert later.forms["ware"] == predict(spec(), "share").value


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (spec("cubic"), "for BBR alone"),
        (spec(rival="vegas"), "beside Reno and CUBIC"),
        (spec(queue="20pkt"), "shorter than one bandwidth-delay product"),
        (spec(queue={"kind": "codel"}), "codel"),
        (spec(loss="1%"), "loses packets"),
        (spec(jitter="1ms"), "vary"),
    ],
)
def test_no_form_for_other_networks(of: Spec, reason: str) -> None:
    found = predict(of, "share")
    assert found.value is None
    assert reason in found.note


@pytest.mark.parametrize(("flows", "queue", "within"), [(4, "533pkt", 0.08), (1, "266pkt", 0.25)])
def test_the_simulator_is_near_the_form(flows: int, queue: str, within: float) -> None:
    """A single flow has less: it needs a part of the 10 s between two ProbeRTT to fill its cap."""
    of = spec(flows=flows, queue=queue)
    of["workload"]["start_jitter"] = "2s"
    records = [
        json.loads(_native.simulate(json.dumps({**of, "seed": seed, "trial": 0}))) for seed in (1, 2, 3)
    ]
    share = fmean(record["metrics"]["share"] for record in records)
    assert share == pytest.approx(predict(of, "share").value, rel=within)
