"""The own state of controllers in traces: frames, files, text and charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import longfat as lf

PATH: dict[str, Any] = {"rate": "10Mbit/s", "delay": "10ms", "queue": "30pkt"}


class Counting(lf.CongestionController):
    """Grows without end, and reports what it counted."""

    def __init__(self) -> None:
        self.acks = 0

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        """Counts."""
        self.acks += 1

    def on_lost(self, loss: lf.Loss) -> None:
        """Ignores losses."""

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Ignores timeouts."""

    def metrics(self) -> dict[str, float]:
        """Returns the count; a second value once there are 50 ACKs; and one that is never a number."""
        late = {"late_seconds": 0.25} if self.acks >= 50 else {}
        return {"acks": self.acks, "nothing": float("nan"), **late}


@pytest.fixture(scope="module")
def own() -> lf.Traces:
    return lf.trace(Counting, PATH, "300kB", interval="5ms")


def test_samples_contain_the_state_of_a_custom_controller(own: lf.Traces) -> None:
    samples = own.samples
    counted = samples["controller_acks"]
    assert counted.is_sorted()
    assert counted[-1] > 50
    late = samples["controller_late_seconds"]
    assert late.null_count() == samples.filter(pl.col("controller_acks") < 50).height > 0
    assert set(late.drop_nulls()) == {0.25}
    assert samples["controller_nothing"].null_count() == samples.height


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_contain_the_state(own: lf.Traces, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"samples.{suffix}"
    own.write(file, "controller")
    read = pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)
    assert read["controller_acks"][-1] == own.samples["controller_acks"][-1]


def test_text_page_and_charts_draw_the_state(own: lf.Traces, tmp_path: Path) -> None:
    own.write(tmp_path / "x.txt", "controller")
    text = (tmp_path / "x.txt").read_text()
    assert "acks" in text
    assert "250 ms" in text
    assert "nothing" not in text
    drawn = str(own.drawing())
    assert "Controller: acks" in drawn
    assert "Controller: late (ms)" in drawn
    assert "Controller: window" not in drawn, "the window has a chart already"
    own.write(tmp_path / "x.html")
    assert "Controller: acks" in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("protocol", "column"),
    [
        ("cubic", "controller_w_max_bytes"),
        ("bbr", "controller_bandwidth_bps"),
        (lf.GoBackN(window="auto", congestion="vegas"), "controller_queued_bytes"),
    ],
)
def test_samples_contain_the_state_of_built_in_controllers(protocol: Any, column: str) -> None:
    samples = lf.trace(protocol, PATH, "2MB").samples
    assert samples[column].drop_nulls().len() > 10
    assert samples["controller_window_bytes"].drop_nulls().min() > 0  # type: ignore[operator]


def test_the_fields_of_events_are_documented() -> None:
    for event in (lf.Acknowledgement, lf.Loss):
        fields = [name for name in vars(event) if not name.startswith("_")]
        assert len(fields) >= 6
        assert [name for name in fields if not getattr(event, name).__doc__] == []
    assert "selectively" in str(lf.Acknowledgement.bytes.__doc__)
