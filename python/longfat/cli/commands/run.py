"""`longfat run`: studies in, answers with error bars out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longfat.cli.arguments.options import StudySeed, StudySettings
from longfat.worlds import WORLDS

if TYPE_CHECKING:
    from longfat.results import RunResult

# Where the output is no terminal there is no width to keep to; tables read well at this one.
_WIDTH_ELSEWHERE = 140


def run(
    study: Annotated[
        list[str],
        typer.Argument(metavar="STUDY", help="Study files, or built-in studies' names such as arq/loss."),
    ],
    world: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORLD", help=f"Run in this world alone ({', '.join(WORLDS)}); may be repeated."
        ),
    ] = None,
    repeats: Annotated[int | None, typer.Option(metavar="N", help="Trials of each cell.")] = None,
    settings: StudySettings = None,
    seed: StudySeed = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Trials at once; all cores by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's own folder; runs/ and the study's name by default."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Answer within half a minute: fewer cells and trials, shorter trials."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Remove this study's records and start over.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Run also what this machine is too slow for (worlds on wall time)."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document on standard output; of several studies a list."),
    ] = False,
) -> None:
    """Run studies and hold their claims against what was measured. A stopped run goes on where it was."""
    from longfat.analysis.expectation import theory_problems
    from longfat.cli.signals import end_like_ctrl_c
    from longfat.presentation.report import write_report
    from longfat.runner import Interrupted, run_study
    from longfat.runner.progress import reporter
    from longfat.study import Overrides, load_study, read_setting

    overrides = Overrides(tuple(map(read_setting, settings or ())), tuple(world or ()), repeats, seed, quick)
    if out is not None and len(study) > 1:
        raise ValueError("--out names the folder of one run: leave it out with several studies")
    # All of them, before the first one runs.
    loaded = [load_study(one, overrides, also=theory_problems) for one in study]
    end_like_ctrl_c()
    results = []
    try:
        for number, one in enumerate(loaded):
            if number and not as_json:
                typer.echo()
            results.append(
                run_study(
                    one, folder=out, jobs=jobs, fresh=fresh, quick=quick, reporter=reporter(), force=force
                )
            )
            report = write_report(results[-1])
            if as_json:
                typer.echo(f"Report: {report}", err=True)
            else:
                _print(results[-1], report)
    except Interrupted as stop:
        typer.echo(f"longfat: {stop}", err=True)
        raise typer.Exit(130) from None
    if as_json:
        documents = [result.to_json() for result in results]
        typer.echo(json.dumps(documents if len(study) > 1 else documents[0], indent=2, ensure_ascii=False))
    failed = [result.study.name for result in results if not any(cell.n for cell in result.cells)]
    if failed:
        which = f" of {', '.join(failed)}" if len(study) > 1 else ""
        typer.echo(f"longfat: no trial{which} succeeded", err=True)
        raise typer.Exit(1)


def _print(result: RunResult, report: Path) -> None:
    from rich.console import Console

    from longfat.presentation import notes
    from longfat.presentation.terminal import table, verdicts

    console = Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE, highlight=False)
    console.print(table(result.study, result))
    if result.claims:
        console.print()
        console.print(verdicts(result.claims))
    console.print()
    if result.quick:
        console.print(notes.quick(result.study), markup=False)
    console.print(f"Report: {report}", soft_wrap=True, markup=False)
