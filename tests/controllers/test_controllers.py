"""Congestion controllers in Python: lookup by name, use by ARQ and TCP, trial keys by source code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import longfat
from longfat.extensions import base as extensions
from longfat.presentation import formatting
from longfat.results.run import Cell
from longfat.results.trial import cell_key
from tests.conftest import Cli

HERE = Path(__file__).parent
AIMD = f"{HERE / 'aimd.py'}:Aimd"
PATH = {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"}
ARQ = {"kind": "selective-repeat", "window": "auto"}


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because a process imports a module only once."""
    return cli_process


def _write(folder: Path, text: str, name: str = "mine.py") -> str:
    """Writes a file with a controller class `Mine`; returns its name in a study."""
    head = "import longfat\n\n\nclass Mine(longfat.CongestionController):\n"
    body = "".join(f"    {line}\n" if line else "\n" for line in text.strip("\n").split("\n"))
    (folder / name).write_text(head + body, encoding="utf-8")
    return f"{folder / name}:Mine"


MINE = """
def __init__(self, packets=20):
    self.window = packets * self.segment

def on_acknowledged(self, ack):
    pass

def on_lost(self, loss):
    pass

def on_timeout(self, now, in_flight):
    pass
"""


def _run(congestion: Any, protocol: dict[str, Any] | None = None, **path: str) -> longfat.Trial:
    return longfat.simulate({**(protocol or ARQ), "congestion": congestion}, {**PATH, **path}, "2MB")


@pytest.mark.parametrize("protocol", [ARQ, {"kind": "tcp"}])
def test_a_fixed_window_in_python_is_the_built_in_one(tmp_path: Path, protocol: dict[str, Any]) -> None:
    mine = _write(tmp_path, MINE)
    for packets in (5, 20, 60):
        ours = _run({"kind": mine, "packets": packets}, protocol, loss="0.5%")
        built_in = _run({"kind": "fixed", "window": packets}, protocol, loss="0.5%")
        assert ours.metrics == built_in.metrics


@pytest.mark.parametrize("window", ["float('inf')", "1e19", "1e18"])
@pytest.mark.parametrize("protocol", [ARQ, {"kind": "tcp"}])
def test_an_unlimited_window_is_a_very_large_one(
    tmp_path: Path, protocol: dict[str, Any], window: str
) -> None:
    mine = _write(tmp_path, MINE.replace("packets * self.segment", window))
    built_in = _run({"kind": "fixed", "window": 1_000_000}, protocol)
    assert _run(mine, protocol).goodput_bps == pytest.approx(built_in.goodput_bps, rel=0.05)


def test_a_pacing_rate_enables_pacing(tmp_path: Path) -> None:
    mine = _write(
        tmp_path, MINE.replace("packets * self.segment", "packets * self.segment; self.pacing_rate = 4e6")
    )
    built_in = _run({"kind": "fixed", "window": 20, "rate": "4Mbit/s"})
    assert _run(mine).metrics == built_in.metrics
    assert built_in.goodput_bps < 4e6


def test_a_controller_of_twenty_lines_behaves_like_reno() -> None:
    lines = (HERE / "aimd.py").read_text(encoding="utf-8").partition("class Aimd")[2].splitlines()
    assert len([line for line in lines if line.strip() and '"""' not in line]) <= 20
    reno = _run({"kind": "reno", "rules": "linux"}, {"kind": "tcp"}, loss="0.1%")
    assert _run(AIMD, {"kind": "tcp"}, loss="0.1%").goodput == pytest.approx(reno.goodput, rel=0.1)
    assert _run({"kind": AIMD, "keep": 0.9}, loss="1%").goodput > 1.2 * _run(AIMD, loss="1%").goodput


def test_a_controller_can_be_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, MINE, "a_module_of_controllers.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _run("a_module_of_controllers:Mine").metrics == _run({"kind": "fixed", "window": 20}).metrics


def test_events_report_consistent_facts(tmp_path: Path) -> None:
    mine = _write(
        tmp_path,
        """
seen = []

def on_sent(self, now, size, in_flight):
    assert 0 <= size <= in_flight, (size, in_flight)  # the end of a stream is a packet without data
    self.sent = getattr(self, "sent", 0) + size

def on_acknowledged(self, ack):
    self.window = 30 * self.segment
    self.seen.append(ack)
    assert ack.in_flight <= self.window
    assert ack.rtt is None or ack.rtt >= 0.02, ack.rtt
    assert ack.delivery_rate is None or ack.delivery_rate <= 21e6
    assert ack.newest_sent_at < ack.now
    assert ack.delivered <= self.sent

def on_lost(self, loss):
    assert loss.bytes > 0
    assert loss.in_flight < loss.prior_in_flight
    assert loss.newest_sent_at < loss.now

def on_timeout(self, now, in_flight):
    assert in_flight > 0
""",
    )
    trial = _run(mine, loss="1%")
    seen = extensions.load("CongestionController", mine).seen
    assert sum(ack.bytes for ack in seen) >= 2_000_000
    assert seen[-1].now == pytest.approx(trial.completion_s, rel=0.05)
    assert [ack.now for ack in seen] == sorted(ack.now for ack in seen)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    1 / 0"),
            "on_acknowledged: ZeroDivisionError: division by zero (line 9)",
        ),
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    self.window = -1"),
            "window is -1: expected a number of at least 0",
        ),
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    self.window = 'much'"),
            "window is 'much': expected a number",
        ),
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    self.window = float('nan')"),
            "window is nan: expected a number",
        ),
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    self.pacing_rate = []"),
            "pacing_rate is []: expected a number",
        ),
        (
            MINE.replace("self, ack):\n    pass", "self, ack):\n    raise SystemExit(3)"),
            "on_acknowledged: SystemExit: 3 (line 9)",
        ),
        (MINE.replace("self, ack):", "self):"), "on_acknowledged: TypeError: "),
    ],
)
def test_an_error_of_a_controller_fails_the_trial_with_one_line(tmp_path: Path, text: str, line: str) -> None:
    mine = _write(tmp_path, text)
    with pytest.raises(longfat.TransferError) as raised:
        _run(mine)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"{mine}.")
    assert line in message


@pytest.mark.parametrize(
    ("text", "settings", "line"),
    [
        (MINE, {"packet": 3}, 'unknown key of congestion controller .* did you mean "packets"'),
        (MINE, {"packets": "many"}, r"Mine: TypeError: .* \(line 6\)|window is "),
        (MINE.replace("packets=20", "packets"), {}, "setting packets of __init__ needs a default"),
        (MINE.replace("def on_lost", "def on_loss"), {}, "TypeError: .*abstract.*on_lost"),
        (MINE.replace("(self, packets=20):", "(self, packets=20)"), {}, r"SyntaxError: .* \(line 5\)"),
        ("raise RuntimeError('not today')", {}, r"RuntimeError: not today \(line 5\)"),
    ],
)
def test_an_unusable_controller_is_refused_before_the_first_trial(
    tmp_path: Path, text: str, settings: dict[str, Any], line: str
) -> None:
    mine = _write(tmp_path, text)
    with pytest.raises(ValueError, match=line) as raised:
        _run({"kind": mine, **settings})
    assert len(str(raised.value).strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("{folder}/mine.py:Mein", r'no class Mein in .*; allowed: Mine; did you mean "Mine"\?'),
        ("{folder}/none.py:Mine", "no such file: .*none.py"),
        ("no_such_module:Mine", "No module named 'no_such_module'"),
        ("json:dumps", "dumps is not derived from longfat.CongestionController"),
        ("{folder}/mine.py:", "write FILE.py:CLASS or package.module:CLASS"),
    ],
)
def test_an_unknown_name_is_one_clear_line(tmp_path: Path, name: str, line: str) -> None:
    _write(tmp_path, MINE)
    with pytest.raises(ValueError, match=line) as raised:
        _run(name.format(folder=tmp_path))
    assert len(str(raised.value).strip().splitlines()) == 1


def test_a_changed_file_is_reloaded(tmp_path: Path) -> None:
    mine = _write(tmp_path, MINE.replace("self, ack):\n    pass", "self, ack)\n    pass"))
    with pytest.raises(ValueError, match="SyntaxError"):
        _run(mine)
    _write(tmp_path, MINE)
    small = _run(mine)
    _write(tmp_path, MINE.replace("packets=20", "packets=5"))
    assert _run(mine).goodput < small.goodput


@pytest.fixture
def study(tmp_path: Path, data: dict[str, Any], write: Callable[..., Path]) -> Path:
    """A study with a controller file in the same folder."""
    (tmp_path / "own").mkdir()
    shutil.copy(HERE / "aimd.py", tmp_path / "own")
    data["protocols"] = [
        {"name": "mine", **ARQ, "congestion": {"kind": "aimd.py:Aimd", "keep": 0.7}},
        {"name": "mine-tcp", "kind": "tcp", "congestion": "aimd.py:Aimd"},
        {"name": "reno", **ARQ, "congestion": "reno"},
    ]
    del data["claims"]
    data["workload"]["size"] = "300kB"
    return write(data, "own/small.toml")


@pytest.mark.slow
def test_a_controller_file_is_relative_to_its_study_on_any_number_of_cores(
    study: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    results = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        # The current folder is not that of the study.
        cli("run", study, "--jobs", jobs, "--out", out)
        results.append(longfat.load_run(out).to_polars())
    assert results[0].equals(results[1])
    assert results[0].height == 3 * 3 * 4
    assert results[0]["error"].null_count() == results[0].height


@pytest.mark.slow
def test_only_trials_of_a_changed_controller_run_again(
    study: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    def run() -> str:
        return str(cli("run", study, "--out", tmp_path / "out").stderr.splitlines()[0])

    assert run() == "sim: 36 trials to run"
    assert run() == "sim: 0 trials to run, 36 already there"
    file = tmp_path / "own" / "aimd.py"
    file.write_text(file.read_text(encoding="utf-8").replace("keep: float = 0.5", "keep: float = 0.6"))
    assert run() == "sim: 24 trials to run, 12 already there"


def test_the_folder_of_a_file_is_not_part_of_trial_keys(tmp_path: Path) -> None:
    keys = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        name = _write(tmp_path / folder, MINE)
        spec = {"path": {}, "protocol": {"congestion": {"kind": name}}, "workload": {}}
        keys.append(cell_key(Cell("sim", "mine", {}, spec), 1, "1"))
    assert keys[0] == keys[1]
    _write(tmp_path / "two", MINE + "\n# a remark")
    spec = json.loads(json.dumps(spec))
    assert cell_key(Cell("sim", "mine", {}, spec), 1, "1") != keys[0]


def test_controllers_can_be_swept(study: Path, data: dict[str, Any], write: Callable[..., Path]) -> None:
    data["protocols"] = [{"name": "sr", **ARQ}]
    data["sweep"] = {"protocols.sr.congestion": ["reno", "aimd.py:Aimd"]}
    data["claims"] = [
        {
            "id": "fast",
            "text": "It is fast",
            "metric": "goodput",
            "of": "sr",
            "relation": "at-least",
            "value": "1Mbit/s",
            "where": {"protocols.sr.congestion": "aimd.py:Aimd"},
        }
    ]
    result = longfat.run(write(data, "own/swept.toml"), out=study.parent / "out")
    assert [cell.n for cell in result.cells] == [4, 4]
    # Labels have the name in the study, without the folder.
    assert [formatting.place(cell.cell.params) for cell in result.cells][1].endswith("aimd.py:Aimd")
    assert str(study.parent) not in formatting.place(result.cells[1].cell.params)
    assert [claim.verdict for claim in result.claims] == ["holds"]


def test_a_trace_has_metrics_of_the_controller(tmp_path: Path) -> None:
    mine = _write(
        tmp_path, MINE + "\ndef metrics(self):\n    return {'packets': self.window / self.segment}\n"
    )
    assert extensions.load("CongestionController", mine)._make(1000, None, settings={}).metrics() == {
        "packets": 20
    }


def test_a_mark_is_a_loss_of_no_bytes() -> None:
    """A marking queue slows an AIMD sender like drops, but without losses (RFC 3168, section 6.1.2)."""
    path = longfat.Path(rate="20Mbit/s", delay="10ms", queue={"kind": "codel", "ecn": True})
    trial = longfat.simulate({"kind": "tcp", "ecn": True, "congestion": AIMD}, path, "10MB")
    assert trial.marks > 10
    assert trial.retransmissions == 0
    assert trial.goodput_bps > 0.85 * 20e6
    assert trial.queueing_delay_mean_s < 0.02


def test_the_relay_world_runs_a_controller_in_python(
    study: Path, data: dict[str, Any], write: Callable[..., Path]
) -> None:
    data["protocols"] = [{"name": "mine", **ARQ, "congestion": "aimd.py:Aimd"}]
    data |= {"worlds": ["relay"], "repeats": 1, "sweep": {}}
    del data["sweep"]
    result = longfat.run(write(data, "own/relay.toml"), out=study.parent / "out")
    assert [cell.n for cell in result.cells] == [1]


def test_a_controller_can_be_created_without_a_connection() -> None:
    class Halving(longfat.CongestionController):
        def __init__(self, packets: int = 2) -> None:
            self.window = packets * self.segment

        def on_acknowledged(self, ack: longfat.Acknowledgement) -> None: ...
        def on_lost(self, loss: longfat.Loss) -> None: ...
        def on_timeout(self, now: float, in_flight: int) -> None: ...

    assert Halving(packets=3).window == 3 * Halving().segment == 3 * 1460
    with pytest.raises(ValueError, match="each connection creates its own"):
        longfat.Tcp(Halving())  # type: ignore[arg-type]
