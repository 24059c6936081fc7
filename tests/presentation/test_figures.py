"""Options of charts for papers: sizes, fonts, texts, axes, distributions, facets, and the plotted values."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest

import longfat as lf
from longfat.presentation.charts import files as chart_files
from longfat.presentation.charts.fonts import is_installed
from longfat.presentation.charts.vega import Format, Spec
from longfat.presentation.run.charts import distributions
from longfat.presentation.run.charts.drawing import Drawing, draw
from longfat.presentation.run.charts.options import Options

STUDY: dict[str, Any] = {
    "title": "Who is fast",
    "repeats": 4,
    "path": {"rate": "10Mbit/s", "queue": "50pkt"},
    "workload": {"kind": "file", "size": "100kB"},
    "protocols": [
        {"name": "reno", "label": "NewReno", "kind": "tcp", "congestion": "reno"},
        {"name": "gbn", "kind": "go-back-n", "window": 8},
    ],
    "sweep": {"path.loss": ["0%", "1%", "5%"], "path.delay": ["5ms", "20ms"]},
}


# One worker builds the fixture, for all tests of this file.
pytestmark = pytest.mark.xdist_group("figures")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> lf.Run:
    return lf.run(STUDY, out=tmp_path_factory.mktemp("run") / "figures")


def drawn(run: lf.Run, metric: str | None = None, **options: Any) -> Drawing:
    return draw(run, metric, Options(**options))


def rows(spec: Spec) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def size_in_points(pdf: bytes) -> tuple[float, float]:
    found = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert found is not None
    return float(found[1]), float(found[2])


@pytest.mark.parametrize(
    ("size", "width", "options"),
    [
        ("column", 252, {}),
        ("column", 252, {"cdf": "trials"}),
        pytest.param("two-column", 515.52, {"facet": "path.delay"}, marks=pytest.mark.slow),
        pytest.param("9cm", 255.12, {"cdf": "flows"}, marks=pytest.mark.slow),
    ],
)
def test_a_file_has_the_requested_width(
    run: lf.Run, size: str, width: float, options: dict[str, Any]
) -> None:
    made = drawn(run, size=size, **options)
    across, _ = size_in_points(chart_files.render(made.spec, "pdf", made.width))
    assert across == pytest.approx(width, abs=0.1)
    svg = chart_files.render(made.spec, "svg", made.width).decode()
    assert float(svg.partition('width="')[2].partition('in"')[0]) == pytest.approx(width / 72, abs=0.01)


def test_a_file_has_the_requested_height(run: lf.Run) -> None:
    for options in ({}, {"facet": "path.delay"}):
        made = drawn(run, size="3.5x2.5in", **options)
        assert size_in_points(chart_files.render(made.spec, "pdf", made.width)) == pytest.approx(
            (252, 180), abs=2
        )


@pytest.mark.slow
def test_text_keeps_its_size_in_every_width(run: lf.Run) -> None:
    """In the drawing, labels have 12 px; the file scales them."""
    sizes = [("column", None, 8), ("two-column", None, 8), ("6in", "10pt", 10), (None, "15pt", 15)]
    for size, font_size, expected in sizes:
        made = drawn(run, size=size, font_size=font_size)
        assert made.width is not None
        real = chart_files.size_of(chart_files.render(made.spec, "svg").decode())[0]
        points = made.spec["config"]["axis"]["labelFontSize"] * made.width * 72 / real
        assert points == pytest.approx(expected, rel=0.02)


def test_a_png_for_print_has_300_dots_per_inch(run: lf.Run) -> None:
    made = drawn(run, size="column")
    png = chart_files.render(made.spec, "png", made.width)
    assert int.from_bytes(png[16:20]) == pytest.approx(3.5 * 300, abs=2)


def test_titles_and_labels_are_replaced_or_removed(run: lf.Run) -> None:
    spec = drawn(run, title="My title", x_label="My x", y_label="My y").spec
    text = json.dumps(spec)
    assert spec["title"]["text"] == ["My title"]
    assert '"My x"' in text
    assert '["My y"]' in text
    bare = drawn(run, title="", x_label="", y_label="").spec
    assert "title" not in bare
    svg = chart_files.render(bare, "svg").decode()
    assert "Packet loss" not in svg
    assert "Goodput" not in svg
    assert "title" not in drawn(run, size="column").spec, "a paper has captions"
    assert drawn(run).spec["title"]["text"] == ["Goodput: Who is fast"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "3.5"}, 'size: "3.5" is not a size; allowed: column (3.5in), two-column (7.16in), a width'),
        ({"size": "0.1in"}, 'size: "0.1in" is out of range'),
        ({"size": "3in3in"}, "is not a size"),
        ({"size": "1.1in"}, 'size: "1.1in" is too narrow'),
        ({"size": "3.5x1in", "font_size": "20pt"}, "is too "),
        ({"font_size": "9furlong"}, 'font_size: "9furlong" is not a font size; write it in pt or px'),
        ({"font_size": "9"}, 'font_size: "9" is not a font size'),
        ({"font_size": "900pt"}, "out of range: 4pt to 72pt"),
        ({"font": " "}, "font: is empty"),
        ({"log": "x"}, "log: the x axis has the value 0 (path.loss in %); a logarithmic axis needs"),
        ({"log": "z"}, 'log: "z" is not known; allowed: x, y, xy, none'),
        ({"log": "y", "cdf": "trials", "by_host": True}, "by_host: excludes log"),
        ({"y_range": "10ms"}, 'y_range: "10ms" is not a range; write LOW..HIGH, e.g. 2Mbit/s..4Mbit/s'),
        (
            {"y_range": "1ms..2ms"},
            'y_range: "1ms..2ms" does not have the unit of the metric; write e.g. 2Mbit',
        ),
        ({"y_range": "1..2"}, 'y_range: "1..2" does not have the unit of the metric'),
        ({"y_range": "1x..2x"}, 'y_range: "1x" has the unknown unit "x"'),
        ({"y_range": "4Mbit/s..2Mbit/s"}, 'y_range: "4Mbit/s..2Mbit/s": the first limit must be below'),
        ({"y_range": "0..2Mbit/s", "log": "y"}, "log: the y axis has the value 0 (Goodput"),
        ({"y_range": "0..1", "cdf": "trials"}, "y_range: excludes cdf: its y axis is a share"),
        ({"y_range": "0..1", "by_host": True}, "by_host: excludes y_range"),
        ({"cdf": "packets"}, 'cdf: "packets" is not known; allowed: trials, flows, rounds'),
        ({"facet": "rate"}, 'facet: "rate" is not swept; allowed: path.loss, path.delay'),
        ({"facet": "world"}, "facet: this run has one world, sim"),
        ({"cell": {"rate": "1"}}, 'cell: "rate" is not swept; allowed: path.loss, path.delay'),
        ({"cell": {"path.loss": "7%"}}, "cell: path.loss = 7% is not swept; allowed: 0%, 1%, 5%"),
        ({"csv": True}, "csv: requires out"),
        ({"out": "x.jpg"}, "out: x.jpg: unknown suffix; allowed: .svg, .png, .pdf, .html"),
    ],
)
def test_wrong_options_are_refused_in_a_line(run: lf.Run, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        run.chart(**options)
    assert "\n" not in str(caught.value)


def test_a_metric_with_zeros_has_no_logarithmic_axis(run: lf.Run) -> None:
    with pytest.raises(ValueError, match=r"log: the y axis has the value 0 .*needs values above 0"):
        run.chart("timeouts", log="y")


def test_axes_are_logarithmic_or_linear_as_requested(run: lf.Run) -> None:
    def scales(spec: Spec, axis: str) -> set[str]:
        pattern = rf'"{axis}": {{"field": "{axis}", "type": "quantitative".*?"scale": {{(?:"type": "(\w+)")?'
        return set(re.findall(pattern, json.dumps(spec)))

    some: dict[str, Any] = {"cell": {"path.loss": "> 0%"}}
    assert scales(drawn(run, log="xy", **some).spec, "x") == {"log"}
    assert scales(drawn(run, log="xy", **some).spec, "y") == {"log"}
    assert "log" not in scales(drawn(run, log="none").spec, "y")


def test_the_y_axis_has_the_requested_range(run: lf.Run) -> None:
    """Marks outside the range are cut."""

    def y_scales(spec: Spec) -> list[Spec]:
        plot = spec.get("spec", spec)
        return [one["encoding"]["y"]["scale"] for one in plot["layer"]]

    made = drawn(run, "rtt_p99", y_range="10ms..14ms")
    (text,) = {json.dumps(one) for one in y_scales(made.spec)}
    assert json.loads(text) == {"domain": [10.0, 14.0], "nice": False, "zero": False}
    layers = made.spec["spec"]["layer"]
    assert all(one["mark"]["clip"] for one in layers)
    alt.Chart.from_dict(made.spec, validate=True)
    assert made.values == drawn(run, "rtt_p99").values, "the CSV file has all values"
    scale = y_scales(drawn(run, "rtt_p99", y_range="10ms..14ms", log="y").spec)[0]
    assert scale == {"type": "log", "domain": [10.0, 14.0], "nice": False}
    assert y_scales(drawn(run, "timeouts", y_range="0..50").spec)[0]["domain"] == [0.0, 50.0]


def test_captions_name_metric_axis_and_path(run: lf.Run) -> None:
    caption = drawn(run, "rtt_p99", size="column").caption
    start = (
        "RTT, 99th percentile over packet loss (%). Path: rate 10Mbit/s, queue 50pkt. Bars: 95 % confidence"
    )
    assert caption.startswith(start), caption


def test_intervals_below_a_logarithmic_axis_are_cut_there(run: lf.Run) -> None:
    made = drawn(run, "retransmissions", log="y", cell={"path.loss": "5%"})
    lows = [row["low"] for row in rows(made.spec) if "low" in row]
    assert lows
    assert min(lows) > 0


def test_a_distribution_over_trials_is_that_of_the_records(run: lf.Run) -> None:
    made = drawn(run, "completion", cdf="trials")
    values = pl.DataFrame(made.values)
    own = values.filter(protocol="NewReno", path_loss=0.05, path_delay=0.02)
    records = run.to_polars().filter(protocol="reno", path_loss=0.05, path_delay=0.02)
    times = records["completion_s"].to_list()
    assert own["completion_s"].to_list() == sorted(set(times))
    shares = [sum(other <= time for other in times) / len(times) for time in own["completion_s"]]
    assert own["share"].to_list() == shares
    alt.Chart.from_dict(made.spec, validate=True)
    panels = made.spec["facet"]["sort"]
    assert len(panels) == 6, "one for each point"
    steps = [row for row in rows(made.spec) if row["series"] == "NewReno" and row["panel"] == panels[-1]]
    assert steps[0]["y"] == 0
    assert "4 trials per line" in made.caption


def test_a_distribution_over_flows_is_that_of_the_flows(run: lf.Run) -> None:
    at = {"path.loss": "5%", "path.delay": "20ms"}
    for metric, column in ((None, "fct_s"), ("goodput", "goodput_bps")):
        made = drawn(run, metric, cdf="flows", cell=at)
        own = pl.DataFrame(made.values).filter(protocol="NewReno")
        flows = run.flows_to_polars().filter(protocol="reno", path_loss=0.05, path_delay=0.02)
        assert own[column].to_list() == sorted(set(flows[column]))
    with pytest.raises(ValueError, match=r'"rtt_p50" is not a metric of flows; .*allowed: fct, goodput'):
        drawn(run, "rtt_p50", cdf="flows")


def test_equal_values_make_one_step(run: lf.Run) -> None:
    made = drawn(run, "completion", cdf="trials", cell={"path.loss": "0%", "path.delay": "5ms"})
    own = pl.DataFrame(made.values).filter(protocol="NewReno")
    assert own["share"].to_list() == [1.0]


def test_long_lines_are_reduced_and_keep_their_ends() -> None:
    from longfat.presentation.run.charts import cdf

    numbers = [float(number) for number in range(1, 50_001)]
    sample = distributions.Sample(None, numbers, 100_000)  # type: ignore[arg-type]
    steps = list(cdf._steps(sample))
    assert len(steps) == cdf.MOST_POINTS + 1
    assert steps[0] == (1.0, 1 / 100_000)
    assert steps[-1] == (50_000.0, 0.5), "half of the flows are incomplete"


def test_a_facet_has_a_small_chart_for_each_value(run: lf.Run) -> None:
    made = drawn(run, facet="path.loss")
    assert made.spec["facet"]["sort"] == ["Packet loss 0%", "Packet loss 1%", "Packet loss 5%"]
    assert '"One-way delay (ms)"' in json.dumps(made.spec), "the other key is the x axis"
    made = drawn(run, facet="path.delay", size="column")
    assert made.spec["columns"] == 2
    alt.Chart.from_dict(made.spec, validate=True)


def test_the_plotted_values_are_next_to_the_chart(run: lf.Run, tmp_path: Path) -> None:
    run.chart("goodput", out=tmp_path / "a.svg", csv=True)
    frame = pl.read_csv(tmp_path / "a.csv")
    measured = frame.filter(kind="measured")
    assert measured.height == len(run.cells)
    columns = ["world", "protocol", "kind", "path_loss", "path_delay", "goodput_bps", "low", "high", "trials"]
    assert measured.columns[: len(columns)] == columns
    (cell,) = measured.filter(protocol="NewReno", path_loss=0.05, path_delay=0.02).rows(named=True)
    expected = next(
        one
        for one in run.cells
        if one.cell.protocol == "reno" and list(one.cell.params.values()) == ["5%", "20ms"]
    ).metrics["goodput_bps"]
    assert cell["goodput_bps"] == pytest.approx(expected.mean)
    assert cell["low"] == pytest.approx(expected.low)
    assert set(frame["kind"]) >= {"measured", "theory"}


def test_chosen_points_are_drawn_alone(run: lf.Run) -> None:
    made = drawn(run, cell={"path.loss": "5%"})
    assert {row["x_text"] for row in rows(made.spec)} == {"5ms", "20ms"}, "the key with one value is no axis"


@pytest.mark.parametrize("fmt", ["pdf", "png"])
@pytest.mark.slow
def test_fonts_must_be_installed_where_files_contain_glyphs(run: lf.Run, tmp_path: Path, fmt: Format) -> None:
    assert is_installed("serif")
    assert not is_installed("No Such Font")
    assert is_installed("No Such Font, serif")
    with pytest.raises(ValueError, match=f'font: "No Such Font" is not installed .* {fmt} needs it'):
        run.chart(font="No Such Font", out=tmp_path / f"a.{fmt}")
    assert list(tmp_path.iterdir()) == []
    run.chart(font="No Such Font", out=tmp_path / "a.svg")
    assert "No Such Font" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    run.chart(font="serif", out=tmp_path / f"a.{fmt}")


def test_an_altair_chart_has_the_options(run: lf.Run) -> None:
    chart = run.chart("completion", cdf="trials", title="T", size="column")
    written = io.StringIO()
    chart.save(written, format="json")
    assert '"T"' in written.getvalue()


def test_interrupted_runs_draw_the_flows_of_their_own_cells(run: lf.Run) -> None:
    """Cells without trials are missing in a result, but count in the records of flows."""
    from dataclasses import replace

    whole, without = drawn(run, cdf="flows"), drawn(replace(run, cells=run.cells[3:]), cdf="flows")
    rest = {(cell.cell.display_name, *cell.cell.params.values()) for cell in run.cells[3:]}
    assert rest
    assert all(value in whole.values for value in without.values)


@pytest.mark.slow
def test_charts_saved_as_html_need_no_network(tmp_path: Path) -> None:
    traces = lf.trace("reno", {"rate": "10Mbit/s", "delay": "5ms"}, "100kB")
    file = tmp_path / "chart.html"
    traces.chart("window").save(str(file))
    text = file.read_text(encoding="utf-8")
    assert len(text) > 500_000
    assert "<script src=" not in text
    assert "<script" in text
