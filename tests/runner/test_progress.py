from __future__ import annotations

import io

import pytest
from rich.console import Console

from longfat.runner import progress
from longfat.runner.progress import Bar, Lines, Reporter, Silent


def drive(reporter: Reporter) -> None:
    reporter.start("sim", 4, 2, 75.0)
    for number in range(4):
        reporter.advance(failed=number == 0)
    reporter.note("[precision] 5%: 2 cells need more repeats")
    reporter.finish()
    reporter.start("relay", 0, 6)
    reporter.finish()


def test_lines_say_what_is_ahead_how_far_it_is_and_how_it_went(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    drive(Lines())
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "sim: 4 trials to run, 2 already there, about 1 min 15 s"
    assert lines[1].startswith("sim: 1 of 4 trials, 1 failed, ")
    assert lines[1].endswith(" left")
    assert "sim: 4 of 4 trials, 1 failed in 0.0 s" in lines
    assert lines[-1] == "relay: 0 trials to run, 6 already there"


def test_a_bar_at_a_terminal() -> None:
    screen = io.StringIO()
    drive(Bar(Console(file=screen, force_terminal=True, width=120)))
    shown = screen.getvalue()
    assert "sim (2 already there), about 1 min 15 s" in shown.replace("\n", "")
    assert "4/4" in shown
    assert "1 failed" in shown
    assert "[precision] 5%: 2 cells need more repeats" in shown


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Silent())
    assert capsys.readouterr() == ("", "")
