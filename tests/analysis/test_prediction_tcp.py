"""Closed forms for TCP trials, compared with the simulator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longfat import _native
from longfat.analysis.prediction import predict
from longfat.analysis.theory import tcp

Spec = dict[str, Any]

EDGE = 1448 * 8 / 40
"""One packet can arrive at the start of the 40 s measured."""


def spec(
    congestion: Any = "reno", path: Spec | None = None, workload: Spec | None = None, **protocol: Any
) -> Spec:
    return {
        "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt", **(path or {})},
        "protocol": {"kind": "tcp", "congestion": congestion, **protocol},
        "workload": {"kind": "bulk", "duration": "60s", "warm_up": "20s", **(workload or {})},
    }


def measured(of: Spec, trials: int = 5) -> dict[str, float]:
    runs = [
        json.loads(_native.simulate(json.dumps({**of, "seed": 3, "trial": trial})))["metrics"]
        for trial in range(trials)
    ]
    return {name: sum(run[name] for run in runs) / trials for name in runs[0] if runs[0][name] is not None}


def test_the_headers_and_the_window_are_those_of_the_trial() -> None:
    found = predict(spec("fixed", {"rate": "1Gbit/s"}, receive_buffer="128KiB", receive_overhead="0B"))
    assert "does not fill the path" in found.note
    # 128 KiB per round trip of 40 ms plus the transmission times of a packet and its ACK.
    assert found.value == pytest.approx(131072 * 8 / (0.04 + (1500 + 40) * 8 / 1e9))


@pytest.mark.parametrize("profile", ["linux", "rfc"])
def test_a_small_window_limits_the_rate(profile: str) -> None:
    of = spec("reno", {"rate": "1Gbit/s"}, receive_buffer="256KiB", profile=profile)
    assert measured(of)["goodput_bps"] == pytest.approx(predict(of).value, rel=0.03)


@pytest.mark.parametrize("queue", ["5pkt", "12pkt", "34pkt", "100pkt"])
def test_renos_sawtooth_matches_the_simulator(queue: str) -> None:
    """Link utilisation and mean queue of one flow, for queues from none to one that fills the link."""
    of = spec("reno", {"queue": queue}, delayed_ack="0ms")
    goodput, waiting = predict(of), predict(of, "queue_mean_packets")
    assert "sawtooth" in goodput.note
    figures = measured(of, 1)
    assert figures["goodput_bps"] == pytest.approx(goodput.value, rel=0.05)
    assert figures["queue_mean_packets"] == pytest.approx(waiting.value, rel=0.2, abs=2)


@pytest.mark.parametrize("loss", [pytest.param("0.01%", marks=pytest.mark.slow), "0.03%", "0.1%"])
@pytest.mark.slow
def test_mathis_matches_rare_losses(loss: str) -> None:
    of = spec("reno", {"rate": "1Gbit/s", "loss": loss, "queue": "10000pkt"}, delayed_ack="0ms")
    of["protocol"] |= {"receive_buffer": "64MiB", "send_buffer": "64MiB"}
    of["workload"] |= {"duration": "300s", "warm_up": "60s"}
    found = predict(of)
    assert found.note.startswith("Mathis")
    assert measured(of)["goodput_bps"] == pytest.approx(found.value, rel=0.06)


def test_goodput_is_between_padhye_and_mathis() -> None:
    """Reno with SACK has fewer timeouts than PFTK assumes, and its window does not grow during recovery."""
    for loss in ("1%", "2%", "5%"):
        of = spec("reno", {"rate": "1Gbit/s", "loss": loss})
        found = predict(of)
        assert found.forms["pftk"] < measured(of)["goodput_bps"] < found.forms["mathis"]


@pytest.mark.parametrize(
    ("delay", "loss"),
    [
        ("10ms", "0.03%"),
        ("50ms", "0.03%"),
        ("100ms", "0.5%"),
        pytest.param("50ms", "0.003%", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_cubic_follows_its_curve_and_its_reno_friendly_window(delay: str, loss: str) -> None:
    of = spec("cubic", {"rate": "10Gbit/s", "delay": delay, "loss": loss, "queue": "100000pkt"})
    of["path"]["reverse"] = {"loss": "0%"}
    of["protocol"] |= {"receive_buffer": "256MiB", "send_buffer": "256MiB", "delayed_ack": "0ms"}
    of["workload"] |= {"duration": "200s", "warm_up": "40s"}
    found = predict(of)
    assert found.value is not None
    assert 0.9 < measured(of)["goodput_bps"] / found.value < 1.1


def test_published_forms_are_available_by_name() -> None:
    found = predict(spec("reno", {"loss": "2%"}))
    # Linux adds its minimum to the RTT; RFC 6298 takes the maximum of both.
    trip, packet = 0.04 + 1540 * 8 / 10e6, 1448 * 8
    assert found.forms["mathis"] == pytest.approx(tcp.mathis(trip, 0.02) * packet)
    assert found.forms["pftk"] == pytest.approx(tcp.pftk(trip, 0.02, 0.24) * packet, rel=0.01)


@pytest.mark.parametrize(
    ("congestion", "loss", "back", "error"),
    [
        ("reno", "0.5%", "0%", 0.05),
        ("reno", "1%", "1%", 0.05),
        ("reno", "5%", "5%", 0.06),
        ("reno", "20%", "0%", 0.1),
        ("reno", "10%", "10%", 0.1),
        ("cubic", "0.5%", "0%", 0.05),
        ("cubic", "1%", "1%", 0.06),
        ("cubic", "5%", "0%", 0.08),
        ({"kind": "cubic", "rules": "rfc"}, "1%", "0%", 0.12),
    ],
)
def test_random_loss_on_the_path_of_the_readme(congestion: Any, loss: str, back: str, error: float) -> None:
    """50 Mbit/s, an RTT of 40 ms, delayed ACKs and the profile linux."""
    path = {"rate": "50Mbit/s", "loss": loss, "queue": "1000pkt", "reverse": {"loss": back}}
    of = spec(congestion, path, {"duration": "220s"})
    assert measured(of)["goodput_bps"] == pytest.approx(predict(of).value, rel=error)


def test_cubic_is_slower_than_reno_under_linux_rules_only() -> None:
    """RFC 9438, section 4.3: the growth rises to Reno's at the window of the last loss. Linux's does not."""
    path = {"rate": "1Gbit/s", "loss": "1%", "reverse": {"loss": "0%"}}
    reno, linux, rfc = (
        spec(congestion, path)
        for congestion in ("reno", "cubic", {"kind": "cubic", "rules": "rfc", "fast_convergence": False})
    )
    assert measured(linux)["goodput_bps"] < measured(reno)["goodput_bps"] < measured(rfc)["goodput_bps"]
    values = [predict(of).value or 0.0 for of in (linux, reno, rfc)]
    assert values == sorted(values)


def test_predictions_are_limited_by_the_link() -> None:
    found = predict(spec("reno", {"loss": "0.01%"}))
    assert found.value == pytest.approx(10e6 * 1448 / 1500)


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"congestion": "cubic"}, "not cubic"),
        ({"path": {"queue": {"kind": "codel"}}}, "codel, not drop-tail"),
        ({"congestion": "bbr", "path": {"loss": "1%"}}, "other rules than Reno and CUBIC"),
    ],
)
def test_without_a_form_the_link_is_the_bound(changes: Spec, phrase: str) -> None:
    found = predict(spec(**changes))
    assert found.value is None
    assert phrase in found.note
    assert found.bound is not None
    assert found.bound == pytest.approx(10e6 * 1448 / 1500 + EDGE)


@pytest.mark.parametrize("loss", ["1%", "5%"])
def test_no_trial_exceeds_the_bound(loss: str) -> None:
    """A controller that ignores loss keeps the link busy: losses before the queue use no link time."""
    of = spec("bbr1", {"loss": loss, "reverse": {"loss": "0%"}})
    found = predict(of)
    assert found.value is None
    assert found.bound is not None
    assert found.bound * (0.98 if loss == "1%" else 0.955) < measured(of, 3)["goodput_bps"] <= found.bound


def test_losses_after_the_slowest_link_reduce_the_bound() -> None:
    slow, fast = {"rate": "10Mbit/s", "loss": "5%"}, {"rate": "50Mbit/s", "loss": "10%"}
    of = spec("bbr1")
    for hops, limit in (([slow, fast], 10e6 * 0.9), ([fast, slow], 10e6)):
        of["path"] = {"hops": [{"delay": "5ms", "reverse": {"loss": "0%"}, **hop} for hop in hops]}
        found = predict(of)
        assert found.bound is not None
        assert found.bound == pytest.approx(limit * 1448 / 1500 + EDGE)
        assert measured(of, 3)["goodput_bps"] <= found.bound * 1.005


@pytest.mark.parametrize("congestion", ["reno", "vegas", "bbr1"])
@pytest.mark.parametrize("loss", ["0%", "2%"])
@pytest.mark.parametrize("metric", ["goodput_bps", "queue_mean_packets"])
def test_a_reversed_link_has_the_same_prediction(congestion: str, loss: str, metric: str) -> None:
    up = {"rate": "2Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": loss}
    down = {"rate": "20Mbit/s", "delay": "15ms", "queue": "30pkt", "loss": "0%"}
    forward = spec(congestion, {**up, "reverse": down}, {"from": "sender", "to": "receiver"})
    reverse = spec(congestion, {**down, "reverse": up}, {"from": "receiver", "to": "sender"})
    one, other = predict(forward, metric), predict(reverse, metric)
    assert (one.value, one.bound, one.note) == (other.value, other.bound, other.note)
    if metric == "goodput_bps":
        assert max(one.value or 0, one.bound or 0) <= 2e6


@pytest.mark.parametrize(
    ("of", "phrase"),
    [
        (spec("reno", {"jitter": "5ms"}), "vary on the path"),
        (spec("reno", {"loss": {"every": 50}}), "not independent"),
        (spec("reno", workload={"kind": "on-off", "rate": "1Mbit/s"}), "is not predicted"),
        (spec("reno", {"rate": "1Gbit/s", "delay": "0ms"}, {"flows": 2}), "max-min"),
    ],
)
def test_a_missing_form_has_a_specific_reason(of: Spec, phrase: str) -> None:
    assert phrase in predict(of).note


@pytest.mark.parametrize(
    ("congestion", "alpha", "beta"),
    [
        ("vegas", 2, 4),
        ({"kind": "vegas", "rules": "paper"}, 1, 3),
        ({"kind": "vegas", "alpha": 4, "beta": 8}, 4, 8),
    ],
)
def test_vegas_keeps_alpha_to_beta_packets(congestion: Any, alpha: int, beta: int) -> None:
    found = predict(spec(congestion, workload={"flows": 3}), "queue_mean_packets")
    # The queue includes the packet in transmission.
    assert dict(found.forms) == {"alpha": 3 * alpha + 1, "beta": 3 * beta + 1}
    alone = spec(congestion)
    assert alpha + 0.5 <= measured(alone, 1)["queue_mean_packets"] <= beta + 1.5
    assert predict(spec(congestion, {"queue": "3pkt"}), "queue_mean_packets").value is None


def test_traffic_counts_among_vegas_flows() -> None:
    of = spec("vegas")
    rival = {"kind": "tcp", "congestion": {"kind": "vegas", "alpha": 10, "beta": 20}}
    of["traffic"] = [{"name": "x", "protocol": rival, "workload": {"kind": "bulk"}}]
    assert predict(of, "queue_mean_packets").forms == {"alpha": 13, "beta": 25}
    of["traffic"][0]["protocol"] = {"kind": "tcp", "congestion": "reno"}
    assert predict(of, "queue_mean_packets").value is None
