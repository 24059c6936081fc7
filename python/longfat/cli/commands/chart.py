"""`longfat chart`: a run's chart as a file for a paper or a slide."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat.cli.arguments.formats import format_of


class ChartFormat(StrEnum):
    """Formats of charts."""

    SVG = "svg"
    PDF = "pdf"
    PNG = "png"
    HTML = "html"


def chart(
    run: Annotated[
        str, typer.Argument(help="Folder or URL of a run, or name of its study (arq/loss for runs/arq/loss).")
    ],
    format_: Annotated[
        ChartFormat | None,
        typer.Option("--format", help="Format.  [default: suffix of --out, else svg]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output file.  [default: named after the metric, in the run's folder]")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Metric (longfat list metrics).  [default: the study's main one]")
    ] = None,
    by_host: Annotated[
        bool, typer.Option("--by-host", help="Bars for each host, next to fair shares.")
    ] = False,
    width: Annotated[int, typer.Option(min=200, max=4000, help="Width of the plots in px.")] = 620,
) -> None:
    """Draw a metric of a run with its confidence intervals.

    \b
    Examples:
      longfat chart arq/loss
      longfat chart runs/arq/loss --metric retransmissions --out retransmissions.pdf
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.analysis import grid
    from longfat.api.runs import load_run
    from longfat.presentation.charts import files as chart_files
    from longfat.presentation.run.charts import hosts, lines, matrix
    from longfat.study.vocabulary import short_metric
    from longfat.system.files import write_whole
    from longfat.system.remote_path import location

    chosen = format_of(out, format_, ChartFormat.SVG)
    named = location(run)
    if isinstance(named, Path) and not named.exists() and (Path("runs") / named).is_dir():
        named = Path("runs") / named
    result = load_run(named)
    shown = grid.shown(result.study, result.cells)
    column = shown[0] if metric is None else result.study.column(metric)
    kind: Any = hosts if by_host else matrix if matrix.suits(result, column) else lines
    target = out or result.folder / f"{short_metric(column)}{'-by-host' if by_host else ''}.{chosen}"
    write_whole(target, chart_files.render(kind.chart(result, column, width=width), chosen.value))
    typer.echo(str(target))
