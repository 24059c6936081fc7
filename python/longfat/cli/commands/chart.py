"""`longfat chart`: a run's chart as a file for a paper or a slide."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat.cli.arguments.formats import format_of


class ChartFormat(StrEnum):
    """What a chart can be written as."""

    SVG = "svg"
    PDF = "pdf"
    PNG = "png"
    HTML = "html"


def chart(
    run: Annotated[
        Path, typer.Argument(help="A run's folder, or its study's name (arq/loss is runs/arq/loss).")
    ],
    format_: Annotated[
        ChartFormat | None, typer.Option("--format", help="By default that of --out's name, else svg.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file; by default named after the metric, in the run's folder.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="What to draw; longfat list names the metrics; by default the study's main one."),
    ] = None,
    by_host: Annotated[
        bool, typer.Option("--by-host", help="Bars for each host, beside fair shares.")
    ] = False,
    width: Annotated[int, typer.Option(min=200, max=4000, help="Width of the plots, in px.")] = 620,
) -> None:
    """Draw a run's measurements with intervals, theory and the source's figures; print the file's name."""
    from longfat.analysis import grid
    from longfat.files import write_whole
    from longfat.presentation import charts, charts_hosts, charts_matrix
    from longfat.runner import load_run
    from longfat.study.vocabulary import resolve_metric, short_metric

    column = resolve_metric(metric) if metric is not None else None
    chosen = format_of(out, format_, ChartFormat.SVG)
    result = load_run(_folder(run))
    column = column or grid.shown(result.study, result.cells)[0]
    kind: Any = charts_hosts if by_host else charts_matrix if charts_matrix.suits(result, column) else charts
    target = out or result.folder / f"{short_metric(column)}{'-by-host' if by_host else ''}.{chosen}"
    write_whole(target, charts.render(kind.chart(result, column, width=width), chosen.value))
    typer.echo(str(target))


def _folder(run: Path) -> Path:
    return Path("runs") / run if not run.exists() and (Path("runs") / run).is_dir() else run
