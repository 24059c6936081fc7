"""The report in a browser and as text: chart before claims, no clipping on phones, no console messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser

import longfat as lf
from longfat.presentation.charts import theme
from longfat.presentation.run.charts import data as chart_data
from longfat.presentation.run.charts import lines
from longfat.presentation.run.report.page import build

pytestmark = pytest.mark.slow

DRAWN = "[...document.querySelectorAll('[data-chart]')].every(one => one.querySelector('.vega-embed svg'))"

STUDY: dict[str, Any] = {
    "title": "A study of a file and two protocols whose title is much longer than its chart is wide",
    "repeats": 3,
    "path": {"rate": "10Mbit/s", "delay": "5ms"},
    "workload": {"kind": "file", "size": "30kB"},
    "protocols": [{"name": "gbn", "kind": "go-back-n", "window": 4}, "cubic"],
    "sweep": {"path.loss": ["0%", "2%"], "path.delay": ["5ms", "20ms"]},
    "claims": [
        {
            "id": "a",
            "text": "Loss costs goodput",
            "metric": "goodput",
            "of": "gbn",
            "relation": "falls-with",
            "along": "path.loss",
        }
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lf.RunResult:
    return lf.run(STUDY, out=tmp_path_factory.mktemp("runs") / "report")


def test_charts_are_complete_on_screens_and_phones(run: lf.RunResult, page: Browser) -> None:
    for width in (1280, 400):
        page.resize(width)
        assert page.open(run.report.as_uri()) == []
        page.wait(DRAWN)
        assert page.complaints() == []
        assert page.overflow() == 0
        cut = page.evaluate(
            "[...document.querySelectorAll('.chart')].filter(c => c.scrollWidth > c.clientWidth).length"
        )
        assert cut == 0


def test_folded_charts_fit_phones(tmp_path: Path, page: Browser) -> None:
    """Charts of minor metrics are folded in a report of two worlds."""
    changes = {"worlds": ["sim", "relay"], "repeats": 1, "sweep": {"path.loss": ["0%", "20%"]}, "claims": []}
    changes["protocols"] = [{"name": "gbn", "kind": "go-back-n", "window": 4}]
    result = lf.run(STUDY | changes, out=tmp_path / "worlds")
    page.resize(400)
    page.open(result.report.as_uri())
    page.wait(DRAWN)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    drawings = "[...document.querySelectorAll('details .chart svg.marks')]"
    widths = page.evaluate(f"{drawings}.map(one => one.getBoundingClientRect().width)")
    assert widths
    assert all(250 < width <= 400 for width in widths)
    assert page.overflow() == 0


def test_panels_are_in_one_column_on_phones(run: lf.RunResult, page: Browser) -> None:
    page.resize(400)
    page.open(run.report.as_uri())
    page.wait(DRAWN)
    lefts = page.evaluate(
        "[...document.querySelectorAll('figure')].map(f => Math.round(f.getBoundingClientRect().left))"
    )
    assert len(set(lefts)) == 1


def test_the_picture_is_before_the_claims_and_the_study_file_is_folded(run: lf.RunResult) -> None:
    text = build(run)
    assert text.index("<h2>Measurements") < text.index("<h2>Verdicts") < text.index("<h2>Tables")
    assert "<h2>Study file</h2><details" in text


def test_tables_and_legends_have_full_names(run: lf.RunResult) -> None:
    assert chart_data.collect(run, "goodput_bps").series == ["Go-Back-N (gbn)", "TCP CUBIC"]
    assert ">Go-Back-N (gbn)</th>" in build(run)


def test_constant_metrics_are_notes(run: lf.RunResult) -> None:
    text = build(run)
    assert "The same in all trials:" in text
    note = text.partition("The same in all trials: ")[2].partition("<")[0]
    assert "flows failed 0" in note
    assert "<summary>Flows failed" not in text


def test_captions_name_the_marks_that_are_drawn(tmp_path: Path) -> None:
    study = {
        "title": "A bound with loss only",
        "repeats": 3,
        "path": {"rate": "10Mbit/s", "delay": "5ms"},
        "workload": {"kind": "bulk", "duration": "2s"},
        "protocols": ["vegas"],
        "sweep": {"path.loss": ["0%", "2%"]},
    }
    result = lf.run(study, out=tmp_path / "bound")
    caption = lines.caption(result, "goodput_bps")
    assert "dashed: theory; dotted: upper bound (≤)" in caption


def test_titles_of_exported_charts_fit_their_width(run: lf.RunResult) -> None:
    spec = lines.chart(run, width=400)
    assert len(spec["title"]["text"]) > 1
    assert max(map(len, spec["title"]["text"])) * theme.TITLE_LETTER <= 400
