"""Fair shares: textbook examples, and the max-min property in random networks."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat import _native
from longfat.analysis.prediction import predict
from longfat.study import units

Spec = dict[str, Any]
PAYLOAD = 1448 / 1500


def dumbbell(**keys: Any) -> Spec:
    return {
        "topology": {"kind": "dumbbell", "bottleneck": {"rate": "45Mbit/s"}, **keys},
        "protocol": {"kind": "tcp", "congestion": "reno"},
        "workload": {"kind": "bulk", "duration": "10s"},
    }


def test_access_links_below_the_fair_share_leave_room() -> None:
    """Hosts of 5, 10, 15, 20 and 25 Mbit/s on 45 Mbit/s get 5, 10, 10, 10 and 10 Mbit/s."""
    of = dumbbell(receivers=1, access=[{"rate": f"{5 * i}Mbit/s"} for i in range(1, 6)])
    shares = [predict(of, f"goodput_bps@s{i}").value for i in range(1, 6)]
    assert shares == pytest.approx([PAYLOAD * 1e6 * share for share in (5, 10, 10, 10, 10)])
    assert predict(of).value == pytest.approx(45e6 * PAYLOAD)


def test_a_long_flow_gets_what_the_narrowest_hop_leaves() -> None:
    """Bertsekas and Gallager, Data Networks, section 6.5.2: a chain whose long flow shares every hop."""
    of = dumbbell()
    hops = [{"rate": f"{rate}Mbit/s"} for rate in (10, 4, 10)]
    of["topology"] = {"kind": "parking-lot", "bottleneck": hops}
    shares = [predict(of, f"goodput_bps@s{i}").value for i in range(4)]
    assert shares == pytest.approx([PAYLOAD * 1e6 * share for share in (2, 8, 2, 8)])


def test_traffic_has_its_share_and_constant_rate_traffic_its_rate() -> None:
    of = dumbbell(pairs=2)
    ends = {"from": "s2", "to": "r2"}
    tcp = {"name": "rival", "protocol": {"kind": "tcp"}, "workload": {"kind": "bulk", "flows": 2, **ends}}
    of["workload"] |= {"from": "s1", "to": "r1"}
    of["traffic"] = [tcp]
    assert predict(of, "goodput_bps@s1").value == pytest.approx(15e6 * PAYLOAD)
    assert predict(of, "goodput_bps@rival").value == pytest.approx(30e6 * PAYLOAD)
    steady = {"kind": "bulk", "rate": "10Mbit/s", **ends}
    of["traffic"] = [{"name": "rival", "protocol": {"kind": "udp", "mss": "972B"}, "workload": steady}]
    assert predict(of, "goodput_bps@s1").value == pytest.approx((45e6 - 10e6 * 1000 / 972) * PAYLOAD)
    assert predict(of, "goodput_bps@nobody").value is None


def test_capacity_that_a_rival_leaves_is_within_the_bound() -> None:
    """Reno backs off before it reaches its share; BBR version 1 takes the remaining capacity."""
    of = dumbbell(pairs=2)
    of["topology"]["bottleneck"] = {"rate": "10Mbit/s", "delay": "20ms"}
    of["topology"]["access"] = [{"rate": "1Gbit/s"}, {"rate": "1Gbit/s", "loss": "3%"}]
    of["protocol"]["congestion"] = "bbr1"
    of["workload"] |= {"from": "s1", "to": "r1"}
    reno, ends = {"kind": "tcp", "congestion": "reno"}, {"kind": "bulk", "from": "s2", "to": "r2"}
    of["traffic"] = [{"name": "rival", "protocol": reno, "workload": ends}]
    found = predict(of)
    assert found.bound is not None
    # One more packet can arrive at the start of the measurement.
    duration = units.number(of["workload"]["duration"])
    assert duration is not None
    assert found.bound == pytest.approx(10e6 * PAYLOAD + 1448 * 8 / duration)
    record = json.loads(_native.simulate(json.dumps({**of, "seed": 1, "trial": 0})))
    assert 0.6 * found.bound < record["metrics"]["goodput_bps"] <= found.bound


@st.composite
def networks(draw: st.DrawFn) -> Spec:
    """A chain of routers with random rates, and flows between random routers, some of constant rate."""
    hops = draw(st.integers(1, 5))
    rates = [draw(st.integers(100, 100_000)) for _ in range(hops)]
    hosts = [f"h{i}" for i in range(hops + 1)]
    routers = [f"n{i}" for i in range(hops + 1)]
    links = [{"from": f"n{i}", "to": f"n{i + 1}", "rate": f"{rates[i]}kbit/s"} for i in range(hops)]
    links += [{"from": host, "to": router} for host, router in zip(hosts, routers, strict=True)]
    flows = draw(st.lists(st.tuples(st.integers(0, hops), st.integers(0, hops)), min_size=1, max_size=6))
    traffic: list[Spec] = []
    for number, (a, b) in enumerate([(0, hops), *((a, b) for a, b in flows if a != b)]):
        demands = draw(st.one_of(st.none(), st.integers(50, 100_000)))
        limit = {} if demands is None else {"rate": f"{demands}kbit/s"}
        workload = {"kind": "bulk", "from": f"h{a}", "to": f"h{b}", **limit}
        traffic.append({"name": f"f{number}", "protocol": {"kind": "tcp"}, "workload": workload})
    first, *others = traffic
    own: Spec = first["workload"]
    return {
        "topology": {"kind": "free", "hosts": hosts, "routers": routers, "links": links},
        "protocol": first["protocol"],
        "workload": {**own, "duration": "1s"},
        "traffic": others,
        "seed": 1,
    }


@given(networks())
def test_shares_are_feasible_and_max_min_fair(of: Spec) -> None:
    found = json.loads(_native.layout(json.dumps(of)))
    capacities = [link["rate_bps"] or math.inf for link in found["links"]]
    routes = [flow["links"] for flow in found["flows"]]
    shares = [flow["max_min_bps"] / flow["payload_share"] for flow in found["flows"]]
    workloads = [of["workload"], *(entry["workload"] for entry in of["traffic"])]
    demands = [
        float(w["rate"].removesuffix("kbit/s")) * 1e3 / PAYLOAD if "rate" in w else math.inf
        for w in workloads
    ]
    near = 1 + 1e-9
    used = [
        sum(share for share, route in zip(shares, routes, strict=True) if link in route)
        for link in range(len(capacities))
    ]
    assert all(use <= capacity * near for use, capacity in zip(used, capacities, strict=True))
    for share, route, demand in zip(shares, routes, demands, strict=True):
        assert share <= demand * near
        if share >= demand / near:
            continue
        # A flow below its demand crosses a full link on which no flow has a larger share.
        assert any(
            used[link] >= capacities[link] / near
            and all(s <= share * near for s, other in zip(shares, routes, strict=True) if link in other)
            for link in route
        )
