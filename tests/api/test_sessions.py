"""`lf.Session`: step sizes do not affect results, changes take effect, snapshots restore."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import longfat as lf

PATH: dict[str, Any] = {"rate": "5Mbit/s", "delay": "10ms", "queue": "20pkt", "loss": "1%"}


def session() -> lf.Session:
    return lf.Session("cubic", PATH, duration="3s", seed=2)


def whole(one: lf.Session, step: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    steps = []
    while not one.over:
        steps.append(one.advance(step))
    events = pl.concat([found.events for found in steps])
    return events, pl.concat([found.samples for found in steps if found.samples.width], how="diagonal")


def test_a_session_equals_its_trial() -> None:
    short, long = session(), session()
    events, samples = whole(short, "7ms")
    assert events.equals(whole(long, "1s")[0])
    assert samples.height == pytest.approx(300, abs=2)
    metrics = lf.simulate("cubic", PATH, duration="3s", seed=2).metrics
    assert short.finish().metrics == long.finish().metrics == metrics


def test_changes_take_effect() -> None:
    one = session()
    one.advance("1s")
    one.set_link("forward", rate="1Mbit/s", loss=None)
    one.set_controller("reno")
    assert one.advance("2s").samples["goodput_bps"].mean() == pytest.approx(1e6, rel=0.15)
    with pytest.raises(ValueError, match='did you mean "forward"'):
        one.set_link("forwrad", rate="1Mbit/s")
    with pytest.raises(ValueError, match="renno"):
        one.set_controller("renno")
    with pytest.raises(ValueError, match="no established TCP connection"):
        one.set_controller("reno", flow=7)
    one.finish()
    with pytest.raises(ValueError, match="finished"):
        one.advance()


def test_protocols_change_while_flows_run() -> None:
    one = lf.Session(lf.Arq("go-back-n", window=16), {**PATH, "loss": "0%"}, duration="9s", seed=2)
    one.advance("1s")
    one.set_protocol(window=2, rto="adaptive", acknowledge_delay=None)
    one.advance("1s")
    assert one.advance("1s").samples["in_flight_bytes"].max() == 2 * 1024
    saved = one.snapshot()
    one.set_protocol(window=5)
    one.advance("1s")
    assert one.advance("1s").samples["in_flight_bytes"].max() == 5 * 1024
    assert saved.restore().advance("1s").samples["in_flight_bytes"].max() == 2 * 1024
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"window": 0}, "window: 0 is out of range: 1 to 1048576 packets"),
        ({"rto": "0ms"}, "rto: .* it must be positive"),
        ({"mss": "100B"}, "mss: cannot change while flows run: allowed: window, rto"),
        ({"windw": 3}, 'windw: unknown key: did you mean "window"'),
        ({"window": "auto"}, "window: cannot change between a number of packets and"),
    ]
    for keys, message in wrong:
        with pytest.raises(ValueError, match=message):
            one.set_protocol(**keys)


def test_tcp_and_mptcp_change_while_flows_run() -> None:
    one = session()
    one.advance("500ms")
    one.set_protocol(congestion={"kind": "fixed", "window": 4}, min_rto="1s", delayed_ack="0ms", ack_every=1)
    assert one.start_flow() == 1
    last = one.advance("1s").samples.group_by("flow").last()
    assert last["cwnd_bytes"].to_list() == [4 * 1448] * 2
    paths = [{"rate": "5Mbit/s", "delay": "5ms"}] * 2
    topology = {"kind": "multipath", "path": paths}
    two = lf.Session(lf.Mptcp(scheduler="min-rtt"), topology=topology, duration="9s")
    two.advance("1s")
    two.set_protocol(scheduler="redundant")
    two.advance("500ms")
    events = two.advance("1s").events
    sent = events.filter(pl.col("what") == "send", pl.col("length") > 0)["length"].sum()
    delivered = events["delivered"].drop_nulls().to_list()
    assert sent / (max(delivered) - min(delivered)) == pytest.approx(2, rel=0.15)
    with pytest.raises(
        ValueError, match="policy: cannot change while flows run: allowed: scheduler, congestion"
    ):
        two.set_protocol(policy="single")


def test_traffic_changes_and_starts_by_its_name() -> None:
    traffic = [{"name": "rival", "protocol": "reno", "workload": {"kind": "bulk"}}]
    path = {**PATH, "loss": "0%"}
    one = lf.Session("cubic", path, duration="9s", traffic=traffic, seed=2)
    one.advance("500ms")
    assert one.start_flow("30kB", traffic="rival") == 2
    one.set_protocol(traffic="rival", congestion={"kind": "fixed", "window": 5})
    saved = one.snapshot()
    step = one.advance("1s")
    last = {row["flow"]: row["cwnd_bytes"] for row in step.samples.sort("time").iter_rows(named=True)}
    assert list(last.values()).count(5 * 1448) == 2
    assert step.events.filter(pl.col("flow") == 2)["delivered"].max() == 30_000
    assert saved.restore().advance("1s").events.equals(step.events)
    with pytest.raises(
        ValueError, match='traffic: "riwal" is not traffic of this session; did you mean "rival"'
    ):
        one.set_protocol(traffic="riwal", min_rto="1s")
    with pytest.raises(ValueError, match="it has none"):
        session().start_flow(traffic="rival")


def test_a_queue_changes_its_discipline_while_packets_wait() -> None:
    one = lf.Session("cubic", {"rate": "10Mbit/s", "delay": "10ms", "queue": "60pkt"}, duration="9s", seed=2)
    assert not one.advance("2s").queues.filter(pl.col("packets") > 40).is_empty()
    one.set_link("forward", queue="codel")
    one.advance("2s")
    assert one.advance("2s").queues.filter(pl.col("packets") > 30).is_empty()
    one.set_link("forward", queue={"kind": "drop-head", "limit": "3pkt"})
    assert one.advance("2s").queues.filter(pl.col("packets") > 3).is_empty()


def test_a_snapshot_restores_the_state() -> None:
    one = session()
    one.advance("500ms")
    one.set_link("forward", delay="30ms")
    one.advance("500ms")
    saved = one.snapshot()
    later = one.advance("1s").events
    assert saved.restore().advance("1s").events.equals(later)
    again = saved.restore()
    again.set_link("forward", delay="1ms")
    assert not again.advance("1s").events.equals(later)
    assert len(repr(again)) < 80


def test_flows_start_and_stop_and_packets_drop() -> None:
    one = lf.Session("cubic", {**PATH, "loss": "0%"}, duration="3s", seed=2)
    step = one.advance("500ms")
    inside = step.events.filter(pl.col("what") == "send", pl.col("length") > 0)["id"][-1]
    one.drop(inside)
    one.drop_next()
    assert one.start_flow("20kB") == 1
    one.set_controller("reno", flow=None)
    assert one.start_flow(pair=0) == 2
    saved = one.snapshot()
    step = one.advance("1s")
    dropped = step.events.filter(pl.col("what") == "drop", pl.col("reason") == "request")
    assert dropped.height == 2
    assert inside in dropped["id"]
    assert set(step.events["flow"]) == {0, 1, 2}
    one.stop_flow(0)
    with pytest.raises(ValueError, match="1 has ended"):
        one.stop_flow(1)
    with pytest.raises(ValueError, match="size"):
        one.start_flow("big")
    with pytest.raises(ValueError, match="pair"):
        one.start_flow(pair=3)
    with pytest.raises(ValueError, match="not on the path"):
        one.drop(inside)
    assert 0 not in set(one.advance("1s").events.filter(pl.col("time") > 2.2)["flow"])
    assert saved.restore().advance("1s").events.equals(step.events)
