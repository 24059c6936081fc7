"""Upper bounds of theory hold for measurements of any duration."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import cases

from longfat import _native
from longfat.analysis.prediction import predict
from longfat.study.vocabulary import canonical


@settings(max_examples=cases(160))
@given(
    rate=st.integers(100, 5000),
    delay=st.integers(1, 100),
    queue=st.integers(2, 60),
    loss=st.sampled_from(["0%", "0%", "1%"]),
    warm_up=st.integers(0, 3000),
    lasts=st.integers(50, 2000),
    flows=st.integers(1, 3),
    controller=st.sampled_from(["cubic", "bbr", "westwood"]),
    buffer=st.sampled_from([None, "8kB"]),
)
def test_goodput_is_within_the_upper_bound(
    rate: int,
    delay: int,
    queue: int,
    loss: str,
    warm_up: int,
    lasts: int,
    flows: int,
    controller: str,
    buffer: str | None,
) -> None:
    protocol: dict[str, Any] = {"kind": "tcp", "congestion": controller}
    spec = {
        "path": {"rate": f"{rate}kbit/s", "delay": f"{delay}ms", "queue": f"{queue}pkt", "loss": loss},
        "protocol": protocol | ({"receive_buffer": buffer} if buffer else {}),
        "workload": {
            "kind": "bulk",
            "flows": flows,
            "duration": f"{warm_up + lasts}ms",
            "warm_up": f"{warm_up}ms",
        },
    }
    record = json.loads(_native.simulate(canonical({**spec, "seed": 1, "trial": 0})))
    expected = predict(spec)
    if record["metrics"] is None or expected.bound is None:
        return
    assert record["metrics"]["goodput_bps"] <= expected.bound * (1 + 1e-9)
