from __future__ import annotations

import io

import pytest
from rich.console import Console

from longfat.runner.progress import Reporter
from longfat.system import progress
from longfat.system.progress import Display, Lines, Live


def drive(display: Display | None) -> None:
    reporter = Reporter(display)
    reporter.start("sim", 4, 2, 75.0)
    for number in range(4):
        reporter.advance(1, int(number == 0))
    reporter.note("[precision] 5%: 2 cells need more repeats")
    reporter.finish()
    reporter.start("relay", 0, 6)
    reporter.finish()


def test_lines_report_start_progress_and_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    drive(Lines())
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "sim: 4 trials to run, 2 already there, about 1 min 15 s"
    assert lines[1].startswith("sim: 3 of 6 trials, 1 failed, ")
    assert lines[1].endswith(" left")
    assert "sim: 6 of 6 trials, 1 failed in 0.0 s" in lines
    assert lines[-1] == "relay: 0 trials to run, 6 already there"


def test_lines_are_throttled_and_never_repeated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines()
    lines.show("a", "early")
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    for text in ("one", "one", "two"):
        lines.show("a", text)
    assert capsys.readouterr().err.splitlines() == ["one", "two"]


def test_a_terminal_shows_bars_and_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_REFRESH_EVERY_S", 0.0)
    screen = io.StringIO()
    drive(Live(Console(file=screen, force_terminal=True, width=120)))
    shown = screen.getvalue()
    assert "sim: 4 trials to run, 2 already there, about 1 min 15 s" in shown
    assert "sim: 6 of 6 trials, 1 failed, 0.0 s left" in shown
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in shown
    assert "[precision] 5%: 2 cells need more repeats" in shown


def test_a_run_without_display_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    drive(None)
    assert capsys.readouterr() == ("", "")
