"""Predicted times of requests and responses, compared with the simulator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longfat import _native
from longfat.analysis.prediction import predict

Spec = dict[str, Any]


def spec(kind: str, path: Spec | None = None, **workload: Any) -> Spec:
    return {
        "path": {"rate": "1.544Mbit/s", "delay": "5ms", **(path or {})},
        "protocol": {"kind": kind},
        "workload": {
            "kind": "request-response",
            "requests": 4,
            "size": "300B",
            "reconnect": True,
            **workload,
        },
    }


def simulated(of: Spec, metric: str = "fct_p50_s") -> float:
    record = json.loads(_native.simulate(json.dumps({**of, "seed": 3, "trial": 0})))
    return float(record["metrics"][metric])


@pytest.mark.parametrize("kind", ["udp", "icmp"])
@pytest.mark.parametrize("size", ["8B", "1400B", "1472B", "1473B", "5kB"])
@pytest.mark.parametrize("path", [{}, {"mtu": "576B"}, {"reverse": {"rate": "56kbit/s", "delay": "1ms"}}])
def test_datagram_times_match_the_simulator(kind: str, size: str, path: Spec) -> None:
    of = spec(kind, path, size=size)
    found = predict(of, "fct_p50_s")
    assert found.exact
    assert simulated(of) == pytest.approx(found.value, abs=1e-6)


def test_a_connection_takes_one_round_trip_more() -> None:
    of = spec("tcp")
    found = predict(of, "fct_min_s")
    assert simulated(of, "fct_min_s") == pytest.approx(found.value, abs=1e-3)
    # Two round trips of 10 ms, plus transmission times.
    assert found.value is not None
    assert 0.020 < found.value < 0.026


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (spec("udp", {"loss": "1%"}), "lose packets"),
        (spec("tcp", size="10kB"), "exceeds one segment"),
        (spec("tcp", reconnect=False), "connection per request"),
        ({**spec("udp"), "path": {"delay": "5ms", "jitter": "1ms"}}, "vary"),
    ],
)
def test_a_missing_form_has_a_reason(of: Spec, why: str) -> None:
    found = predict(of, "fct_p50_s")
    assert found.value is None
    assert why in found.note


def test_unpredicted_metrics_have_a_reason() -> None:
    assert "fct_p99_s" in predict(spec("udp"), "fct_p99_s").note
