"""Charts by host, matrices, several closed forms in a chart, and table columns by workload."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from rich.console import Console

from longfat.analysis import grid
from longfat.analysis.claims import judge
from longfat.analysis.prediction import Prediction, sharing
from longfat.presentation import tables
from longfat.presentation.charts import bundle
from longfat.presentation.charts import files as chart_files
from longfat.presentation.run import details, notes
from longfat.presentation.run.charts import data as chart_data
from longfat.presentation.run.charts import hosts, matrix, panels
from longfat.presentation.run.charts import lines as charts
from longfat.presentation.run.charts.drawing import draw
from longfat.presentation.run.charts.options import Options
from longfat.presentation.run.columns import Column
from longfat.presentation.run.details import WorldTable
from longfat.presentation.run.report.page import build
from longfat.presentation.run.verdicts import verdict
from longfat.results.run import Cell, CellResult, Interval, RunResult
from longfat.study import Study

Data = dict[str, Any]

SHARING: Data = {
    "title": "Who gets how much",
    "worlds": ["sim"],
    "repeats": 3,
    "topology": {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "10Mbit/s"}},
    "workload": {"kind": "bulk", "duration": "10s"},
    "protocols": [{"name": name, "kind": "tcp", "congestion": name} for name in ("reno", "vegas", "cubic")],
    "sweep": {"topology.bottleneck.queue.kind": ["drop-tail", "red", "codel"]},
}


FORMS = {
    "claims": [
        {"id": form, "text": form, "metric": "goodput", "of": "reno", "relation": "higher",
         "against": f"theory:{form}"}
        for form in ("mathis", "pftk")
    ],
}  # fmt: skip
"""Claims that compare with both forms."""


def run_of(changes: Data | None = None, metrics: dict[str, float] | None = None) -> RunResult:
    """Returns a run whose trials all have the same metrics."""
    from longfat.study import sweep

    study = Study.model_validate({**SHARING, **(changes or {})})
    values = {
        "goodput_bps": 9e6,
        "rtt_p50_s": 0.02,
        "goodput_bps@s1": 6e6,
        "goodput_bps@s2": 3e6,
        "jain": 0.9,
    }
    values |= metrics or {}

    def result(number: int, cell: Cell) -> CellResult:
        samples = {
            name: [value * (1 + 0.01 * (t + number)) for t in range(3)] for name, value in values.items()
        }
        intervals = {name: Interval(s[1], s[0], s[2]) for name, s in samples.items()}
        return CellResult(cell, 3, {}, intervals, samples, [0, 1, 2])

    cells = [result(number, cell) for number, cell in enumerate(sweep.cells(study))]
    return RunResult(study, Path("runs/x"), cells, [verdict(one) for one in judge(study, cells)], {})


def printed(renderable: Any, width: int = 140) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.fixture
def fair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces theory: 5 Mbit/s for each host, and two closed forms of goodput."""

    def predict(spec: Data, metric: str = "goodput_bps") -> Prediction:
        if "@" in metric:
            return Prediction(5e6, exact=False, note="fair")
        forms = {"mathis": 8e6, "pftk": 7e6} if metric == "goodput_bps" else {}
        return Prediction(7e6 if forms else None, exact=False, note="two", forms=forms)

    monkeypatch.setattr(grid, "theory_of", lambda result, metric: predict(result.cell.spec, metric))


@pytest.mark.usefixtures("fair")
def test_bars_by_host_show_fair_shares() -> None:
    run = run_of()
    rows, unit = hosts.rows(run, "goodput_bps")
    assert len(rows) == 2 * len(run.cells)
    assert unit == "Mbit/s"
    assert {row["fair"] for row in rows} == {5.0}
    assert {row["host"] for row in rows} == {"s1", "s2"}
    spec = hosts.chart(run, "goodput_bps")
    alt.Chart.from_dict(spec, validate=True)
    assert chart_files.render(spec, "svg").startswith(b"<svg")
    assert "max-min fair shares" in hosts.caption(run, "goodput_bps")


def test_bars_need_hosts() -> None:
    with pytest.raises(ValueError, match="by host"):
        hosts.chart(run_of(), "rtt_p50_s")


def test_two_unordered_dimensions_make_a_matrix() -> None:
    run = run_of()
    assert matrix.suits(run, "goodput_bps")
    spec = matrix.chart(run, "goodput_bps")
    alt.Chart.from_dict(spec, validate=True)
    svg = chart_files.render(spec, "svg").decode()
    assert all(word in svg for word in ("drop-tail", "codel", "TCP Vegas", "TCP CUBIC"))
    # The caption is also that of a figure in a paper, without a report around it.
    assert matrix.caption(run, "goodput_bps") == "Goodput (Mbit/s): means over trials (n = 3)."


def test_a_numeric_sweep_makes_no_matrix() -> None:
    by_rate = run_of({"sweep": {"topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s", "4Mbit/s"]}})
    assert not matrix.suits(by_rate, "goodput_bps")
    assert not matrix.suits(run_of({"sweep": {}}), "goodput_bps")


def test_packets_and_bytes_share_no_axis() -> None:
    for queues, ticks in ((["20pkt", "64KiB"], ("20pkt", "64KiB")), (["20pkt", "44pkt"], (20.0, 44.0))):
        axis = chart_data.collect(run_of({"sweep": {"topology.bottleneck.queue": queues}}), "goodput_bps").x
        assert (axis.quantitative, axis.ticks) == (queues[1] == "44pkt", ticks)


def test_multiples_of_the_bdp_make_an_axis_of_numbers() -> None:
    bottleneck = {"rate": "10Mbit/s", "delay": "20ms"}
    topology = {"topology": {"kind": "dumbbell", "pairs": 2, "bottleneck": bottleneck}}

    def axis(queues: list[str]) -> chart_data.Axis:
        run = run_of({**topology, "sweep": {"topology.bottleneck.queue": queues}})
        return chart_data.collect(run, "goodput_bps").x

    found = axis(["0.5BDP", "1BDP", "8BDP"])
    assert (found.title, found.quantitative, found.ticks) == ("Bottleneck queue (BDP)", True, (0.5, 1.0, 8.0))
    assert not axis(["1BDP", "20pkt"]).quantitative


@pytest.mark.usefixtures("fair")
def test_each_form_of_theory_is_a_line() -> None:
    swept: Data = {"sweep": {"topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s"]}}

    def theory(run: RunResult) -> list[Any]:
        rows = chart_data.collect(run, "goodput_bps").rows
        return [row for row in rows if row["kind"] == "theory"]

    # Without claims about forms, one line is enough.
    assert {(row["form"], row["y"]) for row in theory(run_of(swept))} == {("", 7.0)}
    run = run_of({**swept, **FORMS})
    assert {(row["form"], row["y"]) for row in theory(run)} == {("mathis", 8.0), ("pftk", 7.0)}
    assert not any(row.get("alone") for row in theory(run))
    alt.Chart.from_dict(charts.chart(run), validate=True)


@pytest.mark.usefixtures("fair")
def test_the_table_shows_the_metrics_of_the_workload() -> None:
    run = run_of()
    text = printed(details.table(run.study, run))
    for word in ("Goodput in Mbit/s", "rtt p50", "jain", "theory", "by host", "s1", "s2", "~5.00"):
        assert word in text
    narrow = printed(details.table(run.study, run), 80)
    assert max(map(len, narrow.splitlines())) <= 80


@pytest.mark.usefixtures("fair")
def test_a_narrow_table_has_a_row_for_each_protocol() -> None:
    keys = {"topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s"], "topology.bottleneck.delay": ["1ms", "2ms"]}
    run = run_of({"sweep": {**SHARING["sweep"], **keys}, "show": ["goodput", "rtt_p50", "jain"]})
    text = printed(WorldTable(run.study, "", run.cells, columns_of(run)), 110)
    rows = [line for line in text.splitlines() if any(name in line for name in ("reno", "vegas", "cubic"))]
    assert len(rows) == len(run.cells) == 36
    assert ";" not in text
    first = rows[0].split()
    assert first[:4] == ["drop-tail", "1Mbit/s", "1ms", "reno"]
    # Mean and half-width, theory, then the other metrics.
    assert "~5.00" in first or "~7.00" in first


def columns_of(run: RunResult) -> list[Column]:
    return [Column.of(metric, run.cells) for metric in grid.shown(run.study, run.cells)]


def test_deterministic_trials_are_marked() -> None:
    run = run_of()
    every = [replace(cell, deterministic=True) for cell in run.cells]
    whole = replace(run, cells=every)
    text = printed(details.table(run.study, whole), 200)
    assert text.count("deterministic") == 1
    assert "\N{PLUS-MINUS SIGN}" not in text
    assert "95 %" not in text
    assert 'set workload.start_jitter, e.g. "100ms"' in " ".join(text.split())
    assert "deterministic (n = 3)" in charts.caption(whole, "goodput_bps")
    assert "Deterministic: nothing is random" in build(whole)
    assert all(cell["deterministic"] for cell in whole.to_json()["cells"])
    some = replace(run, cells=[every[0], *run.cells[1:]])
    note = f"deterministic in 1 of {len(run.cells)} cells (without \N{PLUS-MINUS SIGN})"
    assert printed(details.table(run.study, some), 200).count(note) == 1
    assert "deterministic" not in printed(details.table(run.study, run), 200)


def test_start_jitter_is_suggested_where_it_varies_trials() -> None:
    for changes, suggested in (
        ({}, True),
        ({"workload": {"kind": "bulk", "duration": "10s", "start_jitter": "1s"}}, False),
    ):
        run = run_of(changes)
        every = [replace(cell, deterministic=True) for cell in run.cells]
        assert ("start_jitter" in " ".join(notes.determinism(run.study, every))) == suggested
    alone = run_of({"topology": None, "path": {"rate": "1Mbit/s"}, "sweep": {}})
    of_one = [
        replace(cell, deterministic=True, metrics={"goodput_bps": cell.metrics["goodput_bps"]})
        for cell in alone.cells
    ]
    assert "the phase at which the measured time starts" in list(notes.determinism(alone.study, of_one))[-1]
    # The start of a single transfer changes nothing.
    transfer = {"kind": "file", "size": "1MB"}
    single = [
        replace(cell, cell=replace(cell.cell, spec={**cell.cell.spec, "workload": transfer}))
        for cell in of_one
    ]
    assert list(notes.determinism(alone.study, single))[-1] == "one trial is enough"


def test_a_study_selects_the_shown_metrics() -> None:
    run = run_of({"show": ["rtt_p50", "goodput@s2", "timeouts"]})
    assert grid.shown(run.study, run.cells) == ["rtt_p50_s", "goodput_bps@s2"]
    text = printed(details.table(run.study, run))
    assert "RTT, median in ms" in text
    assert "goodput s2" in text
    with pytest.raises(ValueError, match="is not a metric"):
        run_of({"show": ["rtt_p51"]})


def test_the_report_has_bars_and_matrix() -> None:
    page = build(replace(run_of(), claims=[]))
    assert 'data-chart="chart-goodput_bps"' in page
    assert 'data-chart="chart-hosts-goodput_bps"' in page
    assert "Goodput of s1" in page


CLAIM: Data = {"id": "c", "text": "t", "of": "reno", "against": "vegas", "relation": "higher"}


def test_a_claim_applies_to_one_host() -> None:
    sweep: Data = {"sweep": {}}
    run = run_of(sweep | {"claims": [{**CLAIM, "metric": "goodput@s1"}]})
    assert run.claims[0].verdict == "fails"  # later cells have slightly higher values
    run = run_of(sweep | {"claims": [{**CLAIM, "metric": "goodput@s9"}]})
    assert run.claims[0].verdict == "undecided"
    assert 'no flow has the host "s9" (s1, s2)' in run.claims[0].detail


def test_a_claim_about_an_unmeasured_metric_is_undecided() -> None:
    run = run_of({"claims": [{**CLAIM, "metric": "timeouts"}]})
    (verdict,) = run.claims
    assert verdict.verdict == "undecided"
    assert verdict.detail == '"timeouts" was not measured: the workload "bulk" does not produce it here'


@pytest.mark.usefixtures("fair")
def test_forms_are_labelled_at_the_end_of_their_lines() -> None:
    run = run_of(
        {
            "sweep": {"topology.bottleneck.loss": ["0%", "0.01%", "1%", "20%"]},
            "protocols": SHARING["protocols"][:1],
            **FORMS,
        }
    )
    data = chart_data.collect(run, "goodput_bps")
    named = {(row["label"], row["x"]) for row in data.rows if "label" in row}
    assert named == {("mathis", 20.0), ("pftk", 20.0)}
    assert data.x.linear_below == 0.01
    assert '"symlog"' in json.dumps(charts.chart(run))


def test_a_scale_without_zero_or_decades_is_linear() -> None:
    for losses in (["1%", "2%", "5%"], ["0%", "1%", "2%"]):
        run = run_of({"sweep": {"topology.bottleneck.loss": losses}})
        assert chart_data.collect(run, "goodput_bps").x.linear_below is None


def test_charts_use_the_schema_version_of_altair() -> None:
    assert bundle.SCHEMA == alt.SCHEMA_URL
    assert f"v{bundle.VEGA_LITE}." in alt.SCHEMA_URL


@pytest.mark.slow
def test_charts_written_as_vega_lite_are_valid() -> None:
    rates: Data = {"sweep": {"topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s"]}}
    listed: list[Data] = [{}, {"sweep": {}}, rates]
    for changes in listed:
        spec = charts.chart(run_of(changes), "goodput_bps")
        kind = alt.LayerChart if "layer" in spec else alt.FacetChart
        kind.from_dict(spec, validate=True)


def test_ends_of_theory_at_the_same_place_share_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    def labels(pftk: float) -> set[tuple[str, float]]:
        forms = {"mathis": 8e6, "pftk": pftk}
        expected = Prediction(8e6, exact=False, note="", forms=forms)
        monkeypatch.setattr(grid, "theory_of", lambda *_: expected)
        # The largest value, at the right end, comes first.
        run = run_of({"sweep": {"topology.bottleneck.rate": ["2Mbit/s", "1Mbit/s"]}, **FORMS})
        rows = chart_data.collect(run, "goodput_bps").rows
        return {(row["label"], row["x"]) for row in rows if "label" in row}

    assert labels(4e6) == {("mathis", 2.0), ("pftk", 2.0)}
    assert labels(7.9e6) == {("mathis, pftk", 2.0)}


@pytest.mark.usefixtures("fair")
def test_a_table_without_a_sweep_has_a_row_for_each_protocol_or_metric() -> None:
    run = run_of({"sweep": {}})
    table = WorldTable(run.study, "", run.cells, columns_of(run))
    for width, first in ((120, ["reno", "vegas", "cubic"]), (50, ["Goodput", "theory", "RTT,", "Jain's"])):
        text = printed(table, width)
        assert max(map(len, text.splitlines())) <= width
        found = [line.split()[0] for line in text.splitlines() if line.split()]
        assert [word for word in found if word in first] == first


def test_tables_in_a_pipe_have_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of()
    tables.console().print(details.table(run.study, run))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 10
    assert not [line for line in lines if line != line.rstrip()]


def test_a_form_of_another_protocol_is_no_theory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim about one protocol names the form; the other has it for comparison only (BBR's versions)."""

    def theory_of(result: CellResult, _: str) -> Prediction:
        value = 7e6 if result.cell.protocol == "reno" else None
        return Prediction(value, exact=False, note="", forms={"pftk": 7e6})

    monkeypatch.setattr(grid, "theory_of", theory_of)
    data = chart_data.collect(run_of(FORMS), "goodput_bps")
    assert {row["series"] for row in data.rows if row["kind"] == "theory"} == {"TCP Reno"}
    assert {row["form"] for row in data.values if row["kind"] == "theory"} == {"pftk"}


def test_panels_are_below_each_other_where_their_titles_would_overlap() -> None:
    run = run_of(
        {
            "sweep": {
                "topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s", "4Mbit/s", "8Mbit/s"],
                "topology.bottleneck.queue.kind": ["drop-tail", "codel"],
            }
        }
    )
    wide, narrow = (draw(run, None, Options(size=size)).spec for size in ("two-column", "column"))
    assert list(wide["facet"]) == ["column"]
    assert narrow["columns"] == 1
    assert panels.titles_fit(wide)
    assert panels.titles_fit(narrow)
    with pytest.raises(ValueError, match='"1in" is too narrow for the labels'):
        draw(run, None, Options(size="1in"))


def test_titles_wider_than_their_panels_do_not_fit() -> None:
    def spec(width: int) -> Data:
        titles = ["Workload flows of rivals 1", "Workload flows of rivals 4"]
        header = {"labelFontSize": 13}
        return {"facet": {"column": {"sort": titles, "header": header}}, "spec": {"width": width}}

    assert panels.titles_fit(spec(170))
    assert not panels.titles_fit(spec(100))
    assert panels.titles_fit({"layer": []})


@pytest.mark.parametrize("sweep", [{}, {"topology.bottleneck.rate": ["1Mbit/s", "2Mbit/s"]}])
def test_a_fair_share_is_named_as_such(monkeypatch: pytest.MonkeyPatch, sweep: Data) -> None:
    """It is a reference, not a theory of the protocol, and so no approximation."""
    fair = Prediction(8e6, exact=False, note=sharing.NOTE)
    monkeypatch.setattr(grid, "theory_of", lambda *_: fair)
    run = run_of({"sweep": sweep})
    svg = chart_files.render(charts.chart(run, "goodput_bps"), "svg").decode()
    assert ">fair share</text>" in svg
    assert ">theory</text>" not in svg
    assert "dash-dotted: fair share" in charts.caption(run, "goodput_bps")
    assert notes.theory(run.cells[0], "goodput_bps", 1e6) == "8.00"
    estimate = replace(fair, note="another form")
    monkeypatch.setattr(grid, "theory_of", lambda *_: estimate)
    assert notes.theory(run.cells[0], "goodput_bps", 1e6) == "~8.00"


def test_bars_by_host_of_a_study_that_shows_hosts() -> None:
    run = run_of({"show": ["goodput@s1", "goodput@s2"]})
    made = draw(run, None, Options(by_host=True))
    assert made.name == "goodput-by-host"
    assert {row["host"] for row in made.spec["data"]["values"]} == {"s1", "s2"}
    assert draw(run, "goodput@s2", Options(by_host=True)).values == made.values


def test_a_row_that_is_not_full_has_no_empty_axes() -> None:
    rates = [f"{number}Mbit/s" for number in range(1, 7)]
    for count, axes in ((5, 5), (6, 3)):
        run = run_of({"sweep": {"topology.bottleneck.rate": rates[:count]}})
        svg = chart_files.render(hosts.chart(run, "goodput_bps"), "svg").decode()
        assert svg.count(">Host</text>") == axes


def test_charts_of_one_metric_by_host_have_the_same_scale() -> None:
    run = run_of({"show": ["goodput@s1", "goodput@s2"]}, {"goodput_bps@s1": 6e6, "goodput_bps@s2": 3e5})
    alike = [chart_data.collect(run, f"goodput_bps@{host}").y.log for host in ("s1", "s2")]
    assert alike == [True, True], "the metric spans a decade over both hosts"
    near = run_of({"show": ["goodput@s1", "goodput@s2"]})
    assert not chart_data.collect(near, "goodput_bps@s1").y.log
