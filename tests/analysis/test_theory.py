"""Closed forms, compared with numbers from textbooks, with each other, and with the simulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from longfat import _native
from longfat.analysis.prediction import numbers, predict
from longfat.analysis.theory import arq as theory

MBIT = 1e6
BITS = 8000  # a payload of 1000 bytes
WINDOWS = (4, 8, 16, 32)


def spec(
    kind: str, window: int | None = None, path: dict[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    protocol = {"kind": kind, **({"window": window} if window else {}), **keys}
    return {
        "path": {"rate": "100Mbit/s", "delay": "5ms", **(path or {})},
        "protocol": protocol,
        "workload": {"kind": "file", "size": "10MB"},
    }


def test_the_textbook_setting_matches_hand_calculation() -> None:
    """RTT 10 ms, 2 % loss, 1000 bytes, timeout = RTT: values computed by hand from the formulas."""
    assert theory.stop_and_wait(0.01, 0.02, 0, 0.01) * BITS / MBIT == pytest.approx(0.784)
    gbn = [theory.go_back_n_textbook(w, 0.01, 0.02) * BITS / MBIT for w in WINDOWS]
    assert gbn == pytest.approx([2.96, 5.50, 9.65, 15.5], rel=2e-3)
    sr = [theory.selective_repeat_textbook(w, 0.01, 0.02) * BITS / MBIT for w in WINDOWS]
    assert sr == pytest.approx([3.14, 6.27, 12.5, 25.1], rel=4e-3)


def test_stop_and_wait_matches_hand_calculation() -> None:
    # q = 1 - 0.9 * 0.9 = 0.19: 10 ms + 200 ms * 0.19 / 0.81 = 56.9 ms per packet.
    assert 1 / theory.stop_and_wait(0.01, 0.1, 0.1, 0.2) == pytest.approx(0.0569136, rel=1e-5)
    # With exponential backoff: 10 ms + 200 ms * 0.19 / 0.62 = 71.29 ms.
    assert 1 / theory.stop_and_wait_backoff(0.01, 0.1, 0.1, 0.2) == pytest.approx(0.0712903, rel=1e-5)
    assert theory.stop_and_wait_backoff(0.01, 0.3, 0.3, 0.2) == 0.0


def test_a_window_of_one_is_stop_and_wait() -> None:
    for loss in (0.0, 0.02, 0.3):
        alone = theory.stop_and_wait(0.01, loss, 0, 0.05)
        assert theory.go_back_n(1, 0.0001, 0.01, loss, 0.05) == pytest.approx(alone)
        assert theory.selective_repeat(1, 0.0001, 0.01, loss, 0.05) == pytest.approx(alone)


@pytest.mark.parametrize("loss", ["5%", "20%"])
@pytest.mark.parametrize("kind", ["go-back-n", "selective-repeat"])
def test_a_window_of_one_is_predicted_like_stop_and_wait(kind: str, loss: str) -> None:
    alone = spec("stop-and-wait", path={"loss": loss})
    assert predict(spec(kind, 1, path={"loss": loss})) == predict(alone)


def test_loss_to_zero_is_no_loss() -> None:
    for window in (4, 200):
        none = theory.lossless(window, 0.0001, 0.01)
        assert theory.go_back_n(window, 0.0001, 0.01, 1e-9, 0.05) == pytest.approx(none, rel=1e-4)
        assert theory.selective_repeat(window, 0.0001, 0.01, 1e-9, 0.05) == pytest.approx(none, rel=1e-4)


def test_selective_repeat_is_never_below_go_back_n() -> None:
    for window in (2, 4, 16, 36):
        for loss in (0.01, 0.05, 0.1):
            for timeout in (0.01, 0.05, 0.5):
                gbn = theory.go_back_n(window, 1e-6, 0.01, loss, timeout)
                sr = theory.selective_repeat(window, 1e-6, 0.01, loss, timeout)
                assert sr >= gbn * 0.999
                assert sr <= theory.selective_repeat_textbook(window, 0.01, loss) * 1.001


def recursion(window: int, loss: float, timeout: float, packets: int = 60_000) -> float:
    """The exact process of selective repeat: S(i + W) = max over j <= i of S(j) + R + K(j) T, with R = 1."""
    failures = np.random.default_rng(2).geometric(1 - loss, size=packets) - 1
    done = np.zeros(packets)
    latest = left = 0.0
    for i in range(packets):
        left = max(left, done[i - window]) if i >= window else left
        latest = max(latest, left + 1 + failures[i] * timeout)
        done[i] = latest
    return packets / latest


@pytest.mark.parametrize("window", [4, 8, 36])
@pytest.mark.parametrize("loss", [0.02, 0.1])
@pytest.mark.parametrize("timeout", [1.0, 5.0, 20.0])
def test_selective_repeat_approximates_its_recursion(window: int, loss: float, timeout: float) -> None:
    found = theory.selective_repeat(window, 0.0, 1.0, loss, timeout)
    assert found == pytest.approx(recursion(window, loss, timeout), rel=0.045)


def simulated(of: dict[str, Any], trials: int = 40) -> float:
    goodput = []
    for trial in range(trials):
        record = json.loads(_native.simulate(json.dumps({**of, "seed": 5, "trial": trial})))
        goodput.append(record["metrics"]["goodput_bps"])
    # The closed forms give the mean time per byte; a mean of rates would overweight fast trials.
    return float(trials / np.sum(1 / np.asarray(goodput)))


def exact_specs() -> Iterator[dict[str, Any]]:
    for loss in ("0%", "2%", "10%"):
        yield spec("stop-and-wait", path={"loss": loss}, rto="50ms")
        for window in (4, 36):
            lossless_acks = {"loss": loss, "reverse": {"loss": "0%"}}
            yield spec("go-back-n", window, path=lossless_acks, rto="50ms")
    yield spec("selective-repeat", 8, rto="50ms")


@pytest.mark.parametrize("of", list(exact_specs()), ids=lambda s: f"{s['protocol']} {s['path'].get('loss')}")
@pytest.mark.slow
def test_the_simulator_agrees_where_the_form_is_exact(of: dict[str, Any]) -> None:
    prediction = predict(of)
    assert prediction.exact, prediction.note
    assert prediction.value is not None
    assert simulated(of) == pytest.approx(prediction.value, rel=0.02)


@pytest.mark.parametrize(
    "of",
    [
        spec("stop-and-wait", path={"loss": "4%"}),
        spec("go-back-n", 4, path={"loss": "6%"}),
        spec("selective-repeat", 4, path={"loss": "6%"}),
        spec("selective-repeat", 8, path={"loss": "2%"}, rto="100ms"),
        spec("selective-repeat", 16, path={"loss": "2%"}, gap_retransmit=True),
        spec("go-back-n", 16, path={"loss": "2%"}, fast_retransmit=True),
    ],
    ids=lambda s: str(s["protocol"]),
)
def test_the_simulator_is_near_where_the_form_approximates(of: dict[str, Any]) -> None:
    prediction = predict(of)
    assert not prediction.exact
    assert prediction.value is not None
    assert simulated(of) == pytest.approx(prediction.value, rel=0.07)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (spec("selective-repeat"), "congestion controller"),
        (spec("go-back-n", 4, path={"loss": {"every": 50}}), "not independent"),
        (spec("go-back-n", 4, path={"jitter": "1ms"}), "jitter"),
        (spec("go-back-n", 200, path={"queue": "50pkt"}), "overflows"),
        (spec("go-back-n", 1024), "overflows the queue of 1000pkt"),
        (spec("go-back-n", 4, path={"loss": "2%"}, rto="5ms"), "shorter"),
        (spec("go-back-n", 36, path={"loss": "2%", "rate": "10Mbit/s"}), "adaptive timer"),
        (spec("go-back-n", 4, acknowledge_every=2), "ACKs are delayed"),
        (spec("go-back-n", 4, path={"loss": "60%"}), "50 %"),
        ({**spec("stop-and-wait"), "path": {}}, "takes no time"),
    ],
)
def test_a_missing_form_has_its_reason(of: dict[str, Any], reason: str) -> None:
    prediction = predict(of)
    assert prediction.value is None
    assert reason in prediction.note


def test_keys_override_a_preset() -> None:
    path = {"preset": "dsl", "delay": "30ms"}
    setting = numbers({**spec("stop-and-wait"), "path": path})
    assert setting is not None
    # 16 Mbit/s forward for 1084 bytes, 1 Mbit/s back for 60, 30 ms each way.
    assert setting.round_trip == pytest.approx(0.06 + 1084 * 8 / 16e6 + 60 * 8 / 1e6)


def test_a_missing_form_can_have_an_upper_bound() -> None:
    of = spec("selective-repeat", 36, path={"loss": "2%", "rate": "10Mbit/s"}, gap_retransmit=True)
    prediction = predict(of)
    assert prediction.value is None
    # Losses occur before the queue and use no link time.
    assert prediction.bound == pytest.approx(10e6 * 1024 / 1084)
    assert prediction.bound is not None
    assert 0.8 * prediction.bound < simulated(of, 5) <= prediction.bound * 1.01
    assert predict(spec("selective-repeat")).bound is None


@pytest.mark.parametrize("kind", ["stop-and-wait", "go-back-n", "selective-repeat"])
def test_the_reverse_direction_is_predicted_alike(kind: str) -> None:
    up, down = {"rate": "2Mbit/s", "delay": "10ms", "loss": "2%"}, {"rate": "20Mbit/s", "delay": "15ms"}
    window = None if kind == "stop-and-wait" else 4
    forward = spec(kind, window, path={**up, "reverse": {**down, "loss": "0%"}}, rto="200ms")
    reverse = spec(kind, window, path={**down, "reverse": up}, rto="200ms")
    reverse["workload"] |= {"from": "receiver", "to": "sender"}
    found = predict(forward)
    assert found.value is not None
    assert predict(reverse) == found
    assert simulated(reverse, 3) == pytest.approx(found.value, rel=0.1)
