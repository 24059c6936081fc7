"""`longfat chart`: a run's chart as a file for a paper or a slide."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any, Literal, cast, get_args

import typer

from longfat.cli.arguments.formats import format_of
from longfat.cli.arguments.from_function import command

Format = Literal["svg", "pdf", "png", "html"]
"""Formats of charts."""


@command(format_=typer.Option("--format"), width=typer.Option(min=200, max=4000))
def chart(
    run: str,
    *,
    format_: Format | None = None,
    out: File | None = None,
    metric: str | None = None,
    by_host: bool = False,
    width: int = 620,
) -> None:
    """Draw a metric of a run with its confidence intervals.

    \b
    Examples:
      longfat chart arq/loss
      longfat chart runs/arq/loss --metric retransmissions --out retransmissions.pdf

    Args:
        run: Folder or URL of a run, or name of its study (arq/loss for runs/arq/loss).
        format_: Format; by default suffix of `out`, else svg.
        out: Output file; by default named after the metric, in the run's folder.
        metric: Metric (longfat list metrics); by default the study's main one.
        by_host: Bars for each host, next to fair shares.
        width: Width of the plots in px.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.analysis import grid
    from longfat.api.runs import find_run, load_run
    from longfat.presentation.charts import files as chart_files
    from longfat.presentation.run.charts import hosts, lines, matrix
    from longfat.study.vocabulary import short_metric
    from longfat.system.files import write_whole

    chosen = cast("Format", format_of(out, format_, get_args(Format), "svg"))
    result = load_run(find_run(run))
    shown = grid.shown(result.study, result.cells)
    column = shown[0] if metric is None else result.study.column(metric)
    kind: Any = hosts if by_host else matrix if matrix.suits(result, column) else lines
    target = out or result.folder / f"{short_metric(column)}{'-by-host' if by_host else ''}.{chosen}"
    write_whole(target, chart_files.render(kind.chart(result, column, width=width), chosen))
    typer.echo(str(target))
