"""DCTCP: the marks of each ACK reach the controller, also in Python, and thresholds are checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

import longfat as lf
from longfat.study import StudyError

DOCS = Path(__file__).parents[2] / "docs" / "dctcp.md"
SWITCH: Any = {"kind": "step", "limit": "500pkt", "threshold": "20pkt"}
PATH = lf.Path(rate="1Gbit/s", delay="100us", queue=SWITCH)


class Counting(lf.CongestionController):
    """Counts marked bytes, and halves the window once per round trip."""

    marked: ClassVar[int] = 0
    calls: ClassVar[int] = 0

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        Counting.marked += ack.marked_bytes
        if not ack.in_recovery:
            self.window += ack.bytes * self.segment / self.window

    def on_congestion_experienced(self, now: float, sent_at: float) -> None:
        Counting.calls += 1
        self.window = max(self.window * 0.9, 2 * self.segment)

    def on_lost(self, loss: lf.Loss) -> None:
        self.window = max(self.window / 2, 2 * self.segment)

    def on_timeout(self, now: float, in_flight: int) -> None:
        self.window = self.segment


def _count(ecn: Any) -> tuple[float, float]:
    """Returns the marked packets that a controller in Python counts, and those that the queue marked."""
    Counting.marked = Counting.calls = 0
    trial = lf.simulate(lf.Tcp(Counting, ecn=ecn, initial_window=60), PATH, "5MB")
    assert trial.retransmissions == 0
    assert 0 < Counting.calls < trial.marks / 4
    return Counting.marked / 1448, trial.marks


def test_acks_report_every_mark_with_the_feedback_of_dctcp() -> None:
    counted, marks = _count("dctcp")
    assert marks > 100
    assert abs(counted - marks) <= 1, "the last segment may be shorter"


def test_acks_report_an_upper_bound_with_the_feedback_of_rfc_3168() -> None:
    counted, marks = _count(True)
    assert counted > 1.2 * marks


def test_a_dctcp_in_python_matches_the_built_in(tmp_path: Path) -> None:
    """The class of the documentation."""
    blocks = re.findall(r"<!-- file: dctcp\.py -->\n```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    (tmp_path / "dctcp.py").write_text(blocks[0], encoding="utf-8")
    lines = [line for line in blocks[0].splitlines() if line.strip() and '"""' not in line]
    assert len(lines) <= 40
    for threshold in ("20pkt", "100pkt"):
        queue: Any = {**SWITCH, "threshold": threshold}
        path = lf.Path(rate="1Gbit/s", delay="100us", queue=queue)
        built_in, ours = (
            lf.simulate(lf.Tcp(name, profile="rfc", ecn="dctcp"), path, duration="300ms")
            for name in ("dctcp", f"{tmp_path / 'dctcp.py'}:Dctcp")
        )
        assert built_in.marks > 100
        assert ours.metrics == built_in.metrics


def test_dctcp_keeps_the_queue_at_the_threshold_and_reno_fills_it() -> None:
    queue = {}
    for name in ("dctcp", "reno"):
        trial = lf.simulate(lf.Tcp(name), PATH, duration="500ms")
        assert trial.utilisation > 0.98
        queue[name] = trial.queue_mean_packets
    assert queue["dctcp"] < 25
    assert queue["reno"] > 5 * queue["dctcp"]


@pytest.mark.parametrize(
    ("queue", "ecn", "message"),
    [
        (
            {"kind": "step", "limit": "50pkt", "threshold": "60pkt"},
            True,
            'path.queue.threshold: "60pkt" is out of range: below limit = "50pkt"',
        ),
        ({"kind": "step", "limit": "64KiB", "threshold": "65536B"}, True, "is out of range: below limit"),
        (SWITCH, "dctpc", "dctpc"),
    ],
)
def test_wrong_thresholds_and_modes_are_refused(queue: Any, ecn: Any, message: str) -> None:
    with pytest.raises(StudyError, match=re.escape(message)) as refused:
        lf.simulate(lf.Tcp("dctcp", ecn=ecn), lf.Path(rate="1Gbit/s", queue=queue), "1MB")
    assert "\n" not in str(refused.value)
