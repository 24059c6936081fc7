"""The report: one self-contained HTML file that opens without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longfat.analysis import agreement, grid
from longfat.presentation import formatting, names
from longfat.presentation.html.document import document, figure
from longfat.presentation.html.markup import Markup, folded, section, tag
from longfat.presentation.run import notes
from longfat.presentation.run.charts import differences, flows, hosts, lines, matrix
from longfat.presentation.run.report import tables, text, worlds
from longfat.study.vocabulary import AT_HOST, whole_metric
from longfat.system.files import write_whole

if TYPE_CHECKING:
    from longfat.results.run import RunResult
    from longfat.system.remote_path import Location

MINOR_METRICS = ("retransmissions", "efficiency", "timeouts", "rtt_p99_s")
"""Metrics with a smaller chart below those that the study shows, if their means vary."""
LEAST_CHANGE = 0.02
"""The smallest relative change of a minor metric over the cells that is drawn."""

_WIDTH, _MINOR_WIDTH = 900, 400


def write_report(run: RunResult) -> Location:
    """Writes `report.html` into the run's folder atomically and returns its path.

    Raises OSError if the folder cannot be written.
    """
    write_whole(run.report, build(run).encode())
    return run.report


def build(run: RunResult) -> str:
    """Returns the report as HTML."""
    return document(run.study.title, _body(run))


def _body(run: RunResult) -> list[Markup]:
    return [
        text.header(run),
        section("Measurements", _charts(run)),
        section("Verdicts", text.verdicts(run)),
        section("Agreement of worlds", _agreement(run)),
        section("Tables", tables.numbers(run)),
        section("Failures", text.failures(run)),
        section("Theory", text.theory(run)),
        section("Method", text.method(run)),
        section("Study file", folded("Show", tag("pre", tag("code", run.study.text)))),
        section("Reproduce", text.rerun(run)),
        text.footer(run),
    ]


def _charts(run: RunResult) -> list[Markup]:
    measured = grid.measured(run.cells)
    main, *others = grid.shown(run.study, run.cells)
    if main not in measured:
        return []
    candidates = [name for name in dict.fromkeys((*others, *MINOR_METRICS)) if name in measured]
    minor = [n for n in candidates if _change(run, n) > (0.0 if n in others else LEAST_CHANGE)]
    made = [_figure(run, main, _WIDTH)]
    # If a metric of one class is shown, bars compare all classes.
    for whole in dict.fromkeys(map(whole_metric, (main, *(name for name in others if AT_HOST in name)))):
        if len(grid.hosts(run.cells, whole)) > 1:
            spec = hosts.chart(run, whole, width=_WIDTH)
            heading = names.metric_title(whole) if whole != main else ""
            made.append(figure(spec, f"hosts-{whole}", title=heading, caption=hosts.caption(run, whole)))
    wide = len(grid.worlds(run.cells)) > 1
    small = [_figure(run, name, _WIDTH if wide else _MINOR_WIDTH, heading=True) for name in minor]
    if wide and small:
        made.append(folded(_named(minor), small))
    elif small:
        made.append(tag("div", small, class_="minor"))
    if steady := [_steady(run, name) for name in candidates if name not in minor]:
        made.append(tag("p", f"The same in all cells: {'; '.join(steady)}.", class_="note"))
    if bounds := notes.classes(run.study, main):
        made.append(tag("p", f"Classes of flows by size: {bounds}.", class_="note"))
    if found := flows.rows(run):
        spec = flows.chart(run, found, width=_WIDTH)
        title = "Distribution of flow completion times"
        made.append(figure(spec, "flows", title=title, caption=flows.caption(run, found)))
    return made


def _agreement(run: RunResult) -> list[Markup]:
    """A chart of the differences for each pair of worlds, then the tables."""
    found = agreement.agreements(run.cells)
    if not found:
        return []
    made = []
    for cells in agreement.by_world(found):
        spec = differences.chart(run, cells, agreement.measured(cells), width=_WIDTH)
        name = f"agreement-{cells[0].other_world}"
        made.append(figure(spec, name, caption=differences.caption(cells)))
    return [*made, *worlds.tables(run, found)]


def _named(metrics: list[str]) -> str:
    return ", ".join(names.metric_title(name) for name in metrics)


def _change(run: RunResult, metric: str) -> float:
    """The largest difference between the cells' means of a metric, relative to the largest mean."""
    low, high = _range(run, metric)
    return (high - low) / high if high else 0.0


def _range(run: RunResult, metric: str) -> tuple[float, float]:
    means = [cell.metrics[metric].mean for cell in run.cells if metric in cell.metrics]
    return min(means), max(means)


def _steady(run: RunResult, metric: str) -> str:
    """A metric that hardly changes, with its values."""
    low, high = (formatting.quantity(mean, names.unit_of(metric)) for mean in _range(run, metric))
    return f"{names.metric_phrase(metric)} {low if low == high else f'{low} to {high}'}"


def _figure(run: RunResult, metric: str, width: int, *, heading: bool = False) -> Markup:
    kind: Any = matrix if matrix.suits(run, metric) else lines
    spec = kind.chart(run, metric, width=width)
    title = names.metric_title(metric) if heading else ""
    return figure(spec, metric, title=title, caption="" if heading else kind.caption(run, metric))
