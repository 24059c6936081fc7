"""`lf.diagnose` and `longfat diagnose` on saved models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.cli.conftest import Refused, refused  # noqa: F401 - a fixture
from tests.conftest import Cli

import longfat as lf
from longfat import _native
from longfat.analysis.diagnosis import PathFigures
from longfat.api import diagnoses, diagnosis_load, diagnosis_trials
from longfat.api.diagnoses import CONTROLLERS
from longfat.api.diagnosis_study import study
from longfat.api.path_figures import bottleneck, with_queue
from longfat.measurement.load import Loaded, Step
from longfat.study.vocabulary import canonical
from longfat.system.progress import Silent

COUPLED = {"lia", "olia", "balia", "wvegas"}


def test_a_lossy_path_is_limited_by_loss() -> None:
    found = lf.diagnose(model=lf.Path(rate="20Mbit/s", delay="20ms", loss="2%", queue="100pkt"), seeds=3)
    assert found.cause == "loss"
    assert found.goodputs["bbr1"] > 5 * found.goodputs["cubic"]
    assert found.conclusion.startswith("Limit of the path: loss; CUBIC ")
    assert found.conclusion in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_polars().height == 3 * len(CONTROLLERS)
    assert found.drawing() is not None


def test_a_small_window_limits_all_controllers() -> None:
    found = lf.diagnose(model={"rate": "100Mbit/s", "delay": "50ms"}, window="64kB", seeds=2)
    assert found.cause == "window"
    for goodput in found.goodputs.values():
        assert goodput == pytest.approx(64e3 * 8 / 0.1, rel=0.15)


def test_a_small_file_is_limited_by_latency() -> None:
    assert lf.diagnose(model={"rate": "100Mbit/s", "delay": "50ms"}, size="50kB", seeds=2).cause == "latency"


@pytest.mark.parametrize(("address", "headers"), [("192.0.2.1", 20 + 8), ("2001:db8::1", 40 + 8)])
def test_load_fills_packets_and_not_fragments(
    monkeypatch: pytest.MonkeyPatch, address: str, headers: int
) -> None:
    sent: list[tuple[str, int]] = []

    def ping(host: str, *, sizes: int, **_keys: Any) -> None:
        sent.append((host, sizes + headers))
        raise KeyboardInterrupt

    monkeypatch.setattr(diagnosis_load, "ping", ping)
    send = diagnosis_load._sender(address, None, 0.01)
    with pytest.raises(KeyboardInterrupt):
        send(10, 1000.0, 10)
    assert sent == [(address, 1500)]


def test_all_controllers_of_single_paths_are_simulated(cli: Cli) -> None:
    lines = cli("list", "controllers").stdout.splitlines()
    kinds = {line.split('"')[1] for line in lines if line.startswith('  "')}
    # DCTCP requires marks, LEDBAT++ yields to all others, and no system offers Copa or PCC Vivace.
    assert set(CONTROLLERS) == kinds - COUPLED - {"fixed", "dctcp", "prague", "copa", "vivace", "ledbat++"}


@pytest.mark.slow
def test_the_study_and_the_document_continue_a_diagnosis(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text('[path]\nrate = "20Mbit/s"\ndelay = "20ms"\nloss = "2%"\n')
    words = ("--repeats", 2, "--study", "study.toml", "--json")
    document = json.loads(cli("diagnose", "--from", "model.toml", *words).stdout)
    assert document["cause"] == "loss"
    assert document["allowed_bps"]["loss"] < document["allowed_bps"]["bandwidth"]
    assert "Limit of the path: loss" in (tmp_path / "study.toml").read_text()
    cli("run", "study.toml", "--repeats", 2)
    (tmp_path / "saved.json").write_text(
        json.dumps(
            document | {"queueing_s": 0.18, "path": {"rate": "20Mbit/s", "delay": "20ms", "queue": "300pkt"}}
        )
    )
    out = cli("diagnose", "--from", "saved.json", "--repeats", 2).stdout
    assert out.startswith("Limit of the path: bandwidth; CUBIC 19.")
    assert (
        "The queue adds 180 ms under load; with FQ-CoDel at the bottleneck, 99 % of packets would wait for "
        in out
    )


def _loaded(waits: list[float], *, overflows: bool) -> Loaded:
    steps = tuple(Step(64 << number, 200, 0, (0.04 + wait,) * 120) for number, wait in enumerate(waits))
    return Loaded(0.04, steps, overflows, "overflow" if overflows else "time")


@pytest.mark.parametrize(
    ("waits", "overflows", "queue", "limit"),
    [
        ([0.3, 0.599], False, "1497500B", "lower limit"),
        ([0.3, 0.31], True, "775000B", "measured"),
        ([0.01, 0.02], True, "50000B", "measured"),
        ([0.01, 0.02], False, "100000B", "assumed"),
    ],
)
def test_the_measured_wait_is_the_limit_of_the_queue_or_a_lower_one(
    waits: list[float], overflows: bool, queue: str, limit: str
) -> None:
    path = {"hops": [{"rate": "20Mbit/s", "delay": "20ms", "queue": "100000B"}]}
    changed, known = diagnosis_load.with_measured_queue(path, "path", _loaded(waits, overflows=overflows))
    assert (changed["hops"][0]["queue"], known) == (queue, limit)


def test_a_queue_that_was_not_filled_delays_cubic_at_least_as_measured() -> None:
    """20 Mbit/s and a wait of 599 ms: with a queue of one RTT, CUBIC would have 75 ms."""
    path = {"rate": "20Mbit/s", "delay": "20ms", "queue": "1497500B"}
    figures = PathFigures(20e6, 0.0406, queueing=0.599, queue_limit="lower limit")
    (cubic,) = _predicted(path, (), figures, ["cubic"], trials=10)
    rtt = cubic.interval(diagnosis_trials.RTT)
    assert rtt is not None
    assert 0.3 < rtt.low < rtt.high < 1.3


def _predicted(path: Any, hops: Any, figures: PathFigures, names: list[str], trials: int) -> Any:
    tables = study("path", path, figures)
    tables["protocols"] = [one for one in tables["protocols"] if one["name"] in names]
    found, interrupted = diagnosis_trials.simulated(tables, hops, figures, trials, lambda _: None)
    assert not interrupted
    return found


def test_the_uncertainty_of_the_measurement_is_in_the_intervals() -> None:
    """A loss of 0.5 to 2 % widens the goodput of CUBIC from ±20 % to a factor of three."""
    path = {"hops": [{"rate": "20Mbit/s", "delay": "20ms", "loss": "1%"}]}
    hops = [{"ttls": [1], "loss_round_trip": ["1%", "4%"]}]
    figures = PathFigures(20e6, 0.0406, loss=0.01)
    ratios = []
    for known in ((), hops):
        (cubic,) = _predicted(path, known, figures, ["cubic"], trials=20)
        interval = cubic.interval(diagnosis_trials.GOODPUT)
        ratios.append(interval.high / interval.low)
    assert ratios[0] < 1.8
    assert ratios[1] > 2.5


def test_no_goodput_is_above_the_rate_of_the_path() -> None:
    """With a loss of 0.01 %, a transfer reaches the rate or half of it."""
    trials = tuple({diagnosis_trials.GOODPUT: goodput} for goodput in (47e6, 25e6, 46e6, 22e6, 47e6))
    free = diagnosis_trials.Prediction("cubic", trials).interval(diagnosis_trials.GOODPUT)
    bound = diagnosis_trials.Prediction("cubic", trials, fastest=50e6).interval(diagnosis_trials.GOODPUT)
    assert free is not None
    assert bound is not None
    assert free.high > 50e6
    assert (bound.value, bound.low, bound.high) == (free.value, free.low, 50e6)
    path = {"hops": [{"rate": "50Mbit/s", "delay": "20ms", "loss": "0.01%"}]}
    (cubic,) = _predicted(path, (), PathFigures(50e6, 0.0406, loss=1e-4), ["cubic"], trials=3)
    assert cubic.fastest == 50e6


def test_every_protocol_of_the_study_runs_between_kernels() -> None:
    figures = PathFigures(20e6, 0.0406, window=2e6)
    tables = study("path", {"rate": "20Mbit/s", "delay": "20ms"}, figures)
    for one in tables["protocols"]:
        settings = {key: value for key, value in one.items() if key != "name"}
        spec = {"path": tables["path"], "protocol": settings, "workload": tables["workload"]}
        names = {one["congestion"]: "reno"} if "stack" not in one else {}
        _native.check_emulated(canonical({**spec, "seed": 1, "trial": 0}), names)


def test_the_window_of_a_study_is_that_of_the_hosts() -> None:
    found = lf.diagnose(model={"rate": "50Mbit/s", "delay": "50ms"}, window="200kB", seeds=2)
    for goodput in found.goodputs.values():
        assert goodput == pytest.approx(200e3 * 8 / 0.1, rel=0.15)


def test_ctrl_c_keeps_the_finished_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    class Display(Silent):
        def show(self, _key: str, text: str, _part: float | None = None) -> None:
            if text.startswith("simulation: 9 of"):
                raise KeyboardInterrupt

    monkeypatch.setattr(diagnoses, "watching", lambda _: Display())
    found = lf.diagnose(model={"rate": "20Mbit/s", "delay": "20ms"}, seeds=200)
    assert found.interrupted
    assert any("Ctrl-C or SIGTERM stopped it after" in note for note in found.notes)
    assert 9 <= found.to_polars().height < 200


def test_an_interrupted_path_is_diagnosed_without_load_and_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Measured:
        interrupted, links = True, True
        document: ClassVar[dict[str, Any]] = {
            "host": "a.example",
            "hops": [],
            "assumptions": [],
        } | dict.fromkeys(("address", "protocol", "when", "clock", "probes", "reached"))

        def to_path(self) -> lf.Path:
            return lf.Path(hops=[{"rate": "20Mbit/s", "delay": "20ms"}])

    monkeypatch.setattr(diagnoses, "measure_path", lambda *_, **__: Measured())
    found = lf.diagnose("a.example")
    assert found.interrupted
    assert found.notes[0] == "Path: Ctrl-C or SIGTERM stopped the measurement; no load"
    assert found.conclusion == "Limit of the path: bandwidth; it allows 19.3 Mbit/s (of 20.0 Mbit/s)."
    assert not found.table().rows
    assert json.loads(json.dumps(found.document() | {"measured": None}))["interrupted"]


def test_an_interrupted_path_without_bandwidth_is_no_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    class Measured:
        interrupted, links = True, False

    monkeypatch.setattr(diagnoses, "measure_path", lambda *_, **__: Measured())
    with pytest.raises(KeyboardInterrupt):
        lf.diagnose("a.example")


def test_a_queue_replaces_that_of_the_slowest_link() -> None:
    path: dict[str, Any] = {
        "hops": [
            {"rate": "100Mbit/s", "delay": "1ms"},
            {"rate": "20Mbit/s", "delay": "1ms", "reverse": {"rate": "2Mbit/s"}},
        ]
    }
    assert bottleneck(path, "path") == (1, True, 2e6)
    changed = with_queue(path, "path", 30_000.0)
    assert changed["hops"][1]["reverse"] == {"rate": "2Mbit/s", "queue": "30000B"}
    assert "queue" not in path["hops"][1]["reverse"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "set either HOST or --from"),
        (["a.example", "--from", "m.toml"], "set either HOST or --from"),
        (["--from", "missing.toml"], "missing.toml: cannot be read"),
        (["--from", "missing.json"], "missing.json: cannot be read"),
        (["127.0.0.1", "--limit-bytes", "5s"], "--limit-bytes: "),
        (["127.0.0.1", "--duration", "1h"], "--duration: "),
        (["127.0.0.1", "--window", "2GB"], "--window: "),
        (["127.0.0.1", "--study", "x.txt"], "--study x.txt: unknown suffix"),
    ],
)
def test_each_mistake_is_one_line(words: list[str], reported: str, refused: Refused) -> None:  # noqa: F811
    refused(["diagnose", *words], 2, [reported])
