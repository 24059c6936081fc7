"""`longfat chart`: a run's chart as a file for a paper or a slide."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File
from typing import Annotated, Any, get_args

import typer

from longfat.cli.arguments.formats import format_of
from longfat.cli.arguments.from_function import command_of
from longfat.presentation.charts.vega import Format
from longfat.presentation.run.displayed import Run

Points = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE,...", help="Points of the sweep, e.g. path.loss=2%.  [default: all]"),
]


@command_of(
    Run.chart,
    without=["self", "cell", "out", "csv"],
    metric=typer.Option(),
    format_=typer.Option("--format"),
)
def chart(
    run: str,
    *,
    call: partial[Any],
    cell: Points = None,
    format_: Format | None = None,
    out: File | None = None,
    csv: bool = False,
) -> None:
    """Draw a metric of a run with its confidence intervals.

    \b
    Examples:
      longfat chart arq/loss
      longfat chart arq/loss --metric retransmissions --size column --csv --out retransmissions.pdf

    Args:
        run: Folder or URL of a run, or name of its study (arq/loss for runs/arq/loss).
        format_: Format; by default suffix of `out`, else svg.
        out: Output file; by default named after the metric, in the run's folder.
        csv: Plotted values as CSV next to the file, in SI units.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.runs import find_run, load_run
    from longfat.cli.arguments.cells import conditions
    from longfat.presentation.run.charts.drawing import draw
    from longfat.presentation.run.charts.options import Options

    chosen: Any = format_of(out, format_, get_args(Format), "svg")
    metric = call.keywords.pop("metric")
    options = Options(**call.keywords, cell=conditions(cell or ()))
    result = load_run(find_run(run))
    drawn = draw(result, metric, options)
    files = drawn.write(out or result.folder / f"{drawn.name}.{chosen}", chosen, csv=csv)
    for file in files:
        typer.echo(str(file))
    if options.size is not None:
        typer.echo(f"Caption: {drawn.caption}", err=True)
