"""The contents of table, charts and report; charts and report need no network."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from longfat.presentation.charts import files as chart_files
from longfat.presentation.formatting import plus_minus
from longfat.presentation.run import details
from longfat.presentation.run.charts import lines
from longfat.presentation.run.charts.data import axis_key, collect
from longfat.presentation.run.report import page as report
from longfat.presentation.run.report.page import build
from longfat.results.run import Interval, RunResult


def printed(renderable: Any, width: int) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.mark.parametrize("width", [80, 140])
def test_table_fits_and_shows_every_number(whole_run: RunResult, width: int) -> None:
    text = printed(details.table(whole_run.study, whole_run), width)
    assert max(map(len, text.splitlines())) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    for word in (
        "Packet loss",
        "stop-and-wait",
        "gbn",
        "sr",
        "10%",
        "Mbit/s, sim",
        "Mbit/s, relay",
        "theory",
    ):
        assert word in text
    sim = [cell for cell in whole_run.cells if cell.cell.world == "sim"]
    for cell in sim:
        assert plus_minus(cell.metrics["goodput_bps"], 1e6) in text
    assert "n = 18 to 20; Student's t" in " ".join(text.split())
    assert "12 of 120 trials failed: peer silent for 30 s" in " ".join(text.split())


def test_verdicts_are_readable_without_colour(whole_run: RunResult) -> None:
    text = printed(details.verdicts(whole_run.claims), 80)
    for word in ("holds", "fails", "undecided", "(sim)", "(relay)"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_single_trial_is_marked_as_without_interval(factory: Any) -> None:
    run = factory.run(factory.study({"worlds": ["sim"], "repeats": 1}))
    text = printed(details.table(run.study, run), 120)
    assert "±?" in text
    assert "no interval: one trial" in text


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(0.0, 0.0, 0.0), "0 ±0"),
        (Interval(8.95e6, 8.95e6, 8.95e6), "8950000 ±0"),
        (Interval(77.4, 70.1, 84.7), "77.4 ±7.3"),
        (Interval(1234.0, 1100.0, 1368.0), "1234 ±134"),
        (Interval(math.nan, math.nan, math.nan), "\N{EN DASH}"),
    ],
)
def test_means_are_rounded_to_the_precision_of_the_interval(interval: Interval, expected: str) -> None:
    assert plus_minus(interval) == expected


def test_chart_contains_means_intervals_theory_and_source(whole_run: RunResult) -> None:
    spec = lines.chart(whole_run)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    rows = collect(whole_run, "goodput_bps").rows
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("measured", "theory", "source")}
    assert {kind: len(found) for kind, found in kinds.items()} == {"measured": 36, "theory": 36, "source": 14}
    assert all(row["low"] <= row["y"] <= row["high"] for row in kinds["measured"])
    assert {row["x"] for row in rows} == {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}
    assert collect(whole_run, "goodput_bps").x.title == "Packet loss (%)"


@pytest.mark.slow
def test_chart_is_a_valid_specification(factory: Any) -> None:
    import altair as alt

    spec = lines.chart(factory.run(factory.study({"worlds": ["sim"], "repeats": 3})))
    alt.Chart.from_dict(spec, validate=True)
    with pytest.raises(Exception, match="no such mark"):
        alt.Chart.from_dict(spec | {"mark": "no such mark"}, validate=True)


@pytest.mark.parametrize(
    ("sweep", "x"),
    [
        ({}, None),
        (
            {"path.loss": ["2%", {"model": "gilbert-elliott", "enter_bad": "1%", "leave_bad": "25%"}]},
            "path.loss",
        ),
        ({"path.loss": ["2%", "4%"], "path.delay": ["5ms", "10ms", "20ms"]}, "path.delay"),
        ({"protocols.sr.window": [4, 8, 16]}, "protocols.sr.window"),
        ({"path.preset": ["lan", "wifi"]}, "path.preset"),
    ],
)
@pytest.mark.slow
def test_every_kind_of_sweep_has_a_chart(factory: Any, sweep: dict[str, Any], x: str | None) -> None:
    study = factory.study({"worlds": ["sim"], "sweep": sweep, "claims": [], "reported": []})
    run = factory.run(study, lambda _: 1e6)
    data = collect(run, "goodput_bps")
    assert axis_key(run.study) == x
    assert len([row for row in data.rows if row["kind"] == "measured"]) >= len(run.cells)
    assert chart_files.render(lines.chart(run), "svg").startswith(b"<svg")
    assert build(run)


def test_axis_labels_are_complete(factory: Any) -> None:
    sweep = {"protocol.window": [9, 12, 17, 24, 50]}
    protocols = [{"name": name, "kind": "selective-repeat"} for name in ("sr", "gbn")]
    study = factory.study(
        {"worlds": ["sim"], "sweep": sweep, "protocols": protocols, "claims": [], "reported": []}
    )
    drawing = chart_files.render(lines.chart(factory.run(study, lambda _: 1e6)), "svg").decode()
    for window in (9, 12, 17, 24, 50):
        assert f">{window}</text>" in drawing


@pytest.mark.slow
def test_charts_render_offline(whole_run: RunResult) -> None:
    spec = lines.chart(whole_run)
    assert chart_files.render(spec, "svg").startswith(b"<svg")
    assert chart_files.render(spec, "png").startswith(b"\x89PNG\r\n")
    assert chart_files.render(spec, "pdf").startswith(b"%PDF-")
    assert b"vegaEmbed" in chart_files.render(spec, "html")
    with pytest.raises(ValueError, match="allowed: svg, png, pdf, html"):
        chart_files.render(spec, "bmp")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measured no"):
        lines.chart(whole_run, "unknown")


class Sources(HTMLParser):
    """All resources that a browser would fetch."""

    FETCHED = frozenset({"src", "href", "xlink:href", "action", "data", "poster", "srcset"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [value or "" for key, value in attrs if key in self.FETCHED]


def outside_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_report_is_self_contained(whole_run: RunResult) -> None:
    page = build(whole_run)
    parser = Sources()
    parser.feed(page)
    assert [source for source in parser.found if not source.startswith(("#", "data:"))] == []
    assert "link" not in parser.tags
    assert "iframe" not in parser.tags
    assert not re.search(r"@import|url\((?!#)", outside_scripts(page))
    assert page.count("<script") == page.count("</script>")


@pytest.mark.slow
def test_report_contains_study_verdicts_and_environment(whole_run: RunResult) -> None:
    page = build(whole_run)
    text = " ".join(re.sub(r"<[^>]+>", " ", outside_scripts(page)).split())
    for claim in whole_run.claims:
        assert claim.text in text
    for word in (
        "arq-comparison, tables 1 and 4",
        "The window of 8 packets",
        "12 of 120 trials failed",
        "sim and relay: goodput within",
        "Bonferroni",
        "Bandwidth-delay product: 116 packets",
        "longfat run arq/loss",
        "Example CPU",
        "Linux 6.12.0",
        "0.415",
    ):
        assert word in text, word
    # The study file is included verbatim, escaped.
    assert "# &lt;both&gt;" in page
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.DOTALL):
        assert json.loads(data)["$schema"]


def test_hostile_text_is_escaped(factory: Any) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    study = factory.study({"title": hostile, "worlds": ["sim"], "description": hostile, "notes": [hostile]})
    study = study.with_provenance(text=hostile)
    page = build(factory.run(study))
    assert "<script>alert" not in page
    assert "<img" not in outside_scripts(page)


def test_report_is_written_atomically(factory: Any, tmp_path: Path) -> None:
    run = factory.run(factory.study({"worlds": ["sim"]}), folder=tmp_path)
    path = report.write_report(run)
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    gone = factory.run(factory.study({"worlds": ["sim"]}), folder=tmp_path / "gone")
    with pytest.raises(OSError, match=r"report\.html"):
        report.write_report(gone)
