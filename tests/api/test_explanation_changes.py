"""Predictions of `explain` for changes: what a capture leaves open is in their intervals."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scipy

import longfat as lf
from longfat.analysis.captures.explained import Direction
from longfat.analysis.captures.replayed import Change, Replay
from longfat.api import explanation_changes, explanation_replay, explanation_senders, explanation_workload
from longfat.api import specification as real
from longfat.api.explanation_losses import independent_losses
from longfat.system.parameters import ParameterError

CUBIC, VEGAS = {"kind": "tcp", "congestion": "cubic"}, {"kind": "tcp", "congestion": "vegas"}
PROTOCOLS = {"cubic": CUBIC, "vegas": VEGAS}
PATH = {"rate": "20Mbit/s", "delay": "20ms", "queue": "200pkt"}


def workload(one: Direction) -> Mapping[str, Any]:
    found = explanation_workload.workload(one)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Direction:
    file = tmp_path_factory.mktemp("captures") / "lossy.pcapng"
    lf.trace(CUBIC, {**PATH, "loss": "1%"}, "5MB", pcapng=file, snap=96, samples=False)
    found = lf.explain(file, replay=False).one
    assert found is not None
    return found


def test_of_equal_controllers_vegas_is_less_probable(lossy: Direction) -> None:
    found = explanation_senders.probabilities(lossy, {"vegas": lossy, "reno": lossy, "cubic": lossy})
    assert found["reno"] == found["cubic"] == pytest.approx(5 * found["vegas"])
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("share", "problem", "is_clear"), [(0.97, None, True), (0.97, "2 times", False), (0.5, None, False)]
)
def test_a_controller_is_clear_if_its_simulation_fits(
    share: float, problem: str | None, is_clear: bool
) -> None:
    controllers = {"cubic": share, "reno": 1 - share}
    assert Replay(1.0, {}, controllers, problem=problem).is_controller_clear == is_clear


def _changes(
    one: Direction, probabilities: Mapping[str, float], path: dict[str, Any], trials: int = 20
) -> dict[str, Change]:
    changes, unknown = explanation_changes.simulated(
        one, workload(one), PROTOCOLS, probabilities, path, trials, lambda _: None
    )
    assert not unknown
    return {change.name: change for change in changes}


def _width(change: Change) -> float:
    return change.duration.high / change.duration.low


def test_few_losses_leave_their_probability_open(lossy: Direction) -> None:
    def of(lost: int) -> dict[str, Change]:
        document = {**lossy.document, "random_loss_packets": lost, "data_packets": 100 * lost, "lost": []}
        return _changes(replace(lossy, document=document), {"cubic": 1.0}, {**PATH, "loss": "1%"})

    few, many = of(4), of(4000)
    for name in ("half the RTT", "twice the rate"):
        assert _width(few[name]) > 1.5 * _width(many[name])
    # Without random loss, all trials are alike.
    assert _width(few["no random loss"]) == pytest.approx(_width(many["no random loss"]), rel=1e-6)


def test_no_transfer_is_predicted_to_be_faster_than_the_link(tmp_path: Path) -> None:
    """The losses of a short queue count as random ones, whose number leaves durations wide open."""
    path = {"rate": "50Mbit/s", "delay": "20ms", "queue": "15pkt"}
    lf.trace(CUBIC, path, "10MB", pcapng=tmp_path / "short.pcapng", snap=96, samples=False)
    replay = lf.explain(tmp_path / "short.pcapng").replay
    assert replay is not None
    assert len(replay.changes) > 3
    for change in replay.changes:
        rate = 100e6 if change.name == "twice the rate" else 50e6
        assert change.duration.low > 0.99 * 8 * 10e6 / rate, change.name


@pytest.mark.slow
def test_probabilities_of_loss_are_those_of_the_binomial_distribution(
    lossy: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []

    def specification(protocol: object, path: Mapping[str, Any], *rest: object, **keys: object) -> object:
        if isinstance(path.get("loss"), str):
            used.append(float(path["loss"].removesuffix("%")) / 100)
        return real.specification(protocol, path, *rest, **keys)  # type: ignore[arg-type]

    monkeypatch.setattr("longfat.api.explanation_changes.specification", specification)
    _changes(lossy, {"cubic": 1.0}, {**PATH, "loss": "1%"}, trials=50)
    lost, sent = lossy.document["random_loss_packets"], lossy.document["data_packets"]
    expected = scipy.stats.beta(lost + 0.5, sent - lost + 0.5)
    assert len(set(used)) == 50
    assert scipy.stats.kstest(sorted(set(used)), expected.cdf).statistic < 0.05


def test_groups_of_losses_count_once(lossy: Direction) -> None:
    def of(lost: list[int], packets: int) -> int:
        document = {**lossy.document, "random_loss_packets": len(lost), "lost": lost, "data_packets": packets}
        return independent_losses(replace(lossy, document=document))

    # Every second packet of a flight at the end of slow start, and one loss later.
    assert of([*range(500, 540, 2), 9000], 10_000) == 2
    draw = random.Random(1)
    for probability in (0.001, 0.01, 0.1):
        samples = [[n for n in range(1, 10_001) if draw.random() < probability] for _ in range(50)]
        assert sum(of(sample, 10_000) == len(sample) for sample in samples) >= 48


def test_all_possible_controllers_are_simulated(lossy: Direction) -> None:
    # With losses by a full queue, all trials have the same queue.
    known = replace(lossy, document={**lossy.document, "overflow_packets": 1000})
    alone = [_changes(known, {name: 1.0}, PATH)["initial window of 30 packets"] for name in PROTOCOLS]
    rtts = [change.rtt for change in alone]
    assert rtts[0] is not None
    assert rtts[1] is not None
    assert rtts[0] < 0.9 * rtts[1]
    mixed = _changes(known, {"cubic": 0.75, "vegas": 0.25}, PATH)["initial window of 30 packets"]
    assert mixed.rtt == pytest.approx(0.75 * rtts[0] + 0.25 * rtts[1], rel=0.05)
    improbable = _changes(known, {"cubic": 0.97, "vegas": 0.03}, PATH)["initial window of 30 packets"]
    assert improbable.rtt == rtts[0]


def test_a_rate_that_the_user_knows_gives_all_predictions(tmp_path: Path) -> None:
    file, model = tmp_path / "loss.pcapng", tmp_path / "path.toml"
    # As in the next test.
    lf.trace(CUBIC, {**PATH, "loss": "1%"}, "1MB", seed=1003, pcapng=file, snap=96, samples=False)
    unknown = lf.explain(file, trials=4)
    assert unknown.replay is not None
    assert "no random loss" in unknown.replay.unknown
    assert any("State it with --rate." in line for line in map(str, unknown.remarks()))
    found = lf.explain(file, rate="20Mbit/s", trials=4)
    assert found.replay is not None
    assert not found.replay.unknown
    assert any("20.0 Mbit/s (as given)" in line for line in map(str, found.remarks()))
    [without] = [one for one in found.replay.changes if one.name == "no random loss"]
    lossless = lf.simulate(CUBIC, PATH, "1MB").metrics["completion_s"]
    assert without.duration.value == pytest.approx(lossless, rel=0.1)
    found.write_model(model)
    assert 'rate = "20Mbit/s"' in model.read_text()
    for rate, text in (("20", "is not a rate"), ("0Mbit/s", "is not above 0")):
        with pytest.raises(ParameterError, match=text):
            lf.explain(file, rate=rate)


def test_changes_that_depend_on_an_unknown_rate_have_no_prediction(tmp_path: Path) -> None:
    file = tmp_path / "slow.pcapng"
    # The losses of this seed begin before the transfer fills the link.
    lf.trace(CUBIC, {**PATH, "loss": "1%"}, "1MB", seed=1003, pcapng=file, snap=96, samples=False)
    one = lf.explain(file, replay=False).one
    assert one is not None
    assert one.path["rate_bps"] is None
    path = explanation_replay.path_model(one)
    changes, unknown = explanation_changes.simulated(
        one, workload(one), PROTOCOLS, {"cubic": 1.0}, path, 10, lambda _: None
    )
    # Without losses or with BBR, the transfer would take what the rate allows.
    assert {"BBRv1", "no random loss"} <= set(unknown)
    assert not {one.name for one in changes} & set(unknown)


def test_a_window_is_simulated_over_a_faster_link_than_it_shows(tmp_path: Path) -> None:
    # 19 kB per 60 ms are 2.6 of 20 Mbit/s: over a link of 3.2 Mbit/s, they would take 48 ms more.
    file, model = tmp_path / "window.pcapng", tmp_path / "model.toml"
    path = {"rate": "20Mbit/s", "delay": "30ms", "queue": "100pkt"}
    small = {**CUBIC, "receive_buffer": "30kB"}
    lf.trace(small, path, "2MB", pcapng=file, snap=96, samples=False)
    found = lf.explain(file)
    assert found.replay is not None
    assert found.one is not None
    assert (found.one.path["rate_bps"], found.replay.rate_from) == (None, "faster")
    durations = {change.name: change.duration for change in found.replay.changes}
    metrics = lf.trace(small, {**path, "delay": "15ms"}, "2MB", samples=False).metrics
    (expected,) = (one["completion_s"] for one in metrics.values())
    assert durations["half the RTT"].value == pytest.approx(expected, rel=0.05)
    assert "no limit by windows" in found.replay.unknown
    found.write_model(model)
    read = tomllib.loads(model.read_text(encoding="utf-8"))["path"]
    assert "rate" not in read
    assert float(read["delay"].removesuffix("ms")) == pytest.approx(30, rel=0.03)


@pytest.mark.parametrize(("key", "size"), [("receive_buffer", "64kB"), ("send_buffer", "64kB")])
def test_a_window_is_simulated_with_as_many_segments(key: str, size: str, tmp_path: Path) -> None:
    """A segment less would take 4 % more time."""
    file, path = tmp_path / "window.pcapng", {"rate": "100Mbit/s", "delay": "20ms"}
    small = {**CUBIC, key: size}
    lf.trace(small, path, "2MB", pcapng=file, snap=96, samples=False)
    replay = lf.explain(file, trials=2).replay
    assert replay is not None
    assert replay.baseline is not None
    assert replay.baseline.duration.value == pytest.approx(replay.captured, rel=0.02)
    durations = {change.name: change.duration for change in replay.changes}
    half = lf.simulate(small, {**path, "delay": "10ms"}, "2MB").metrics["completion_s"]
    assert durations["half the RTT"].value == pytest.approx(half, rel=0.02)


@pytest.mark.slow
def test_intervals_contain_what_a_small_difference_of_the_rtt_decides(tmp_path: Path) -> None:
    path, size, reno = {"rate": "50Mbit/s", "delay": "32.3ms"}, "25MB", {"kind": "tcp", "congestion": "reno"}

    def transfer(delay: str) -> tuple[float, int]:
        found = lf.trace(reno, {**path, "delay": delay, "queue": "fq-codel"}, size)
        thresholds = set(found.samples["controller_ssthresh_bytes"].drop_nulls())
        return next(iter(found.metrics.values()))["completion_s"], len(thresholds)

    # The sender repairs CoDel's drops in two or three recoveries, and halves its window in each.
    (early, twice), (late, thrice) = transfer("32.1ms"), transfer("32.33ms")
    assert (twice, thrice) == (2, 3)
    assert late > 1.4 * early
    file = tmp_path / "reno.pcapng"
    lf.trace(reno, {**path, "queue": "168pkt"}, size, pcapng=file, snap=96, samples=False)
    one = lf.explain(file, replay=False).one
    assert one is not None
    model = explanation_replay.path_model(one)
    changes, _ = explanation_changes.simulated(
        one, workload(one), {"reno": reno}, {"reno": 1.0}, model, 20, lambda _: None
    )
    fair = {change.name: change.duration for change in changes}["FQ-CoDel at the bottleneck"]
    assert fair.low < early < late < fair.high
    assert min(abs(fair.value / early - 1), abs(fair.value / late - 1)) < 0.05


def test_durations_are_those_with_the_losses_of_the_capture(tmp_path: Path) -> None:
    file, size, lossy = tmp_path / "few.pcapng", "1MB", {**PATH, "loss": "1%"}
    # Of 700 packets the first ones are lost, within slow start, or the last ones, which costs little.
    durations = []
    for lost in ([20, 100, 200, 300], [400, 500, 600, 650]):
        same = {**lossy, "loss": {"kind": "packets", "packets": lost}, "reverse": {"loss": "0%"}}
        lf.trace(CUBIC, same, size, pcapng=file, snap=96, samples=False)
        one = lf.explain(file, replay=False).one
        assert one is not None
        found = _changes(one, {"cubic": 1.0}, lossy, trials=5)["half the RTT"].duration
        metrics = lf.trace(CUBIC, {**same, "delay": "10ms"}, size, samples=False).metrics
        (expected,) = (one["completion_s"] for one in metrics.values())
        assert found.value == pytest.approx(expected, rel=0.05)
        assert found.low < found.value < found.high
        durations.append(expected)
    assert durations[0] > 1.3 * durations[1]


def test_an_assumed_queue_is_open(tmp_path: Path) -> None:
    file, reno = tmp_path / "loss.pcapng", {"kind": "tcp", "congestion": "reno"}
    path = {"rate": "20Mbit/s", "delay": "37.5ms", "queue": "125pkt"}
    lf.trace(reno, {**path, "loss": "3%"}, "1.25MB", pcapng=file, snap=96, samples=False)
    one = lf.explain(file, replay=False).one
    assert one is not None
    assert explanation_replay.is_queue_assumed(one)
    assert explanation_replay.is_queue_assumed(replace(one, document={**one.document, "overflow_packets": 1}))
    model = explanation_replay.path_model(one)
    # A queue of 251 packets loses the last ones of slow start; others do not delay the file.
    assert model["queue"] == "251pkt"
    changes, _ = explanation_changes.simulated(
        one, workload(one), {"reno": reno}, {"reno": 1.0}, model, 10, lambda _: None
    )
    found = {change.name: change.duration for change in changes}["no random loss"]
    metrics = lf.trace(reno, path, "1.25MB", samples=False).metrics
    (expected,) = (one["completion_s"] for one in metrics.values())
    assert found.value == pytest.approx(expected, rel=0.03)
