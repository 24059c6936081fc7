"""`lf.sweep`: a tidy frame of all combinations, and results that display themselves."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import longfat as lf

PATH = {"rate": "10Mbit/s", "delay": "5ms", "queue": "50pkt"}
BASE: dict[str, Any] = {"path": PATH, "size": "50kB"}
OVER: dict[str, Any] = {"protocol": ["reno", lf.GoBackN(window=8)], "path.loss": ["0%", "2%"]}


@pytest.fixture(scope="module")
def swept() -> lf.Run:
    return lf.sweep(BASE, OVER, seeds=4)


def test_a_sweep_has_a_row_for_each_trial(swept: lf.Run) -> None:
    frame = swept.to_polars()
    assert frame.height == 2 * 2 * 4
    assert frame.select("protocol", "path_loss", "trial").is_unique().all()
    assert frame["protocol"].unique().sort().to_list() == ["go-back-n", "reno"]
    assert frame["path_loss"].unique().sort().to_list() == [0.0, 0.02]
    assert frame["goodput_bps"].null_count() == 0


def test_the_values_are_those_of_single_trials(swept: lf.Run) -> None:
    one = lf.simulate("reno", PATH | {"loss": "2%"}, "50kB", trial=3)
    row = swept.to_polars().filter(protocol="reno", path_loss=0.02, trial=3)
    assert row["goodput_bps"].item() == one.goodput_bps


def test_a_study_can_be_the_base(data: dict[str, Any]) -> None:
    done = lf.sweep(data, {"path.delay": ["1ms", "2ms"]}, seeds=2)
    assert done.to_polars().select("path_delay", "path_loss").unique().height == 2 * 3


def test_mistakes_name_the_key() -> None:
    with pytest.raises(ValueError, match="set the protocols"):
        lf.sweep(BASE, {"path.loss": ["0%"]})
    with pytest.raises(ValueError, match=r"over\.\"path.loss\": must be a list"):
        lf.sweep(BASE, {"protocol": ["reno"], "path.loss": "1%"})
    with pytest.raises(ValueError, match=r"path\.lose"):
        lf.sweep(BASE, {"protocol": ["reno"], "path.lose": ["1%"]})
    with pytest.raises(ValueError, match="size"):
        lf.sweep({"path": PATH, "protocol": "reno"})


def test_the_text_is_short_and_html_has_a_chart(swept: lf.Run) -> None:
    text = repr(swept)
    assert len(text) < 2000
    assert "±" in text
    assert "Go-Back-N" not in text  # the names of the study
    page = swept._repr_html_()
    assert "<table>" in page
    assert "<svg" in page
    assert len(repr(swept.study)) < 300


def test_charts_are_altair_charts(swept: lf.Run) -> None:
    assert "goodput" in swept.chart("goodput").to_json().lower()
    with pytest.raises(ValueError, match="measured"):
        swept.chart("wire_p50")
    assert swept.table("goodput", "rtt_p50").head[-1].startswith("RTT")


def test_other_libraries_read_the_result_without_a_copy(swept: lf.Run) -> None:
    stream = swept.__arrow_c_stream__()
    assert "arrow_array_stream" in repr(stream)
    assert pl.DataFrame(swept).equals(swept.to_polars())


def test_records_are_kept_only_in_a_given_folder(tmp_path: Path) -> None:
    lf.sweep(BASE, OVER, seeds=2, out=tmp_path / "kept")
    again = lf.load_run(tmp_path / "kept")
    assert not again.interrupted
    assert again.to_polars().height == 8


def test_an_interrupted_run_keeps_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"path": PATH, "duration": "60s"}
    with pytest.raises(KeyboardInterrupt) as stop:
        _interrupted(base, tmp_path / "script")
    assert 0 < stop.value.partial().to_polars().height < 2000  # type: ignore[attr-defined]
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    done = _interrupted(base, tmp_path / "prompt")
    assert done.interrupted
    assert "interrupted" in repr(done)
    assert 0 < done.to_polars().height < 2000


def _interrupted(base: dict[str, Any], out: Path) -> lf.Run:
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(1.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        return lf.sweep(base, {"protocol": ["reno"]}, seeds=2000, out=out, progress=False)
    finally:
        timer.cancel()
