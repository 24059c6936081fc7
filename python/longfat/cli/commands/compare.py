"""`longfat compare`: two runs of a study, such as those of two versions."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.api import comparisons
from longfat.cli import CLAIM_FAILS, standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson

if TYPE_CHECKING:
    from longfat.presentation.run.comparison import ComparedRuns


@command_of(
    comparisons.compare,
    without=["metrics"],
    run_a=typer.Argument(metavar="RUN_A"),
    run_b=typer.Argument(metavar="RUN_B"),
)
def compare(
    *,
    call: partial[Any],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Metric to compare; repeatable.  [default: those that the first study shows]"
        ),
    ] = None,
    fail_on_change: Annotated[
        bool,
        typer.Option("--fail-on-change", help="Exit with code 3 if a cell has changed, fails or is missing."),
    ] = False,
    summary: Annotated[
        File | None, typer.Option(metavar="FILE", help="Output file for a Markdown summary: .md.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report which cells differ between two runs, corrected for the number of comparisons.

    \b
    Examples:
      longfat compare runs/before runs/after
      longfat compare runs/before runs/after --metric goodput --fail-on-change
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.formats import require_suffix
    from longfat.presentation import tables
    from longfat.presentation.run.comparison import conclusion, differences, markdown
    from longfat.system.files import write_whole

    require_suffix("--summary", summary, ".md")
    found: ComparedRuns = call(metrics=metric or ())
    if summary is not None:
        write_whole(summary, markdown(found).encode())
    if as_json:
        standard_output.document(found.to_json())
    else:
        for line in differences(found):
            typer.echo(line)
        if found.changed:
            tables.show(found.table())
        typer.echo(conclusion(found))
    if fail_on_change and found.is_changed:
        raise typer.Exit(CLAIM_FAILS)
