"""`longfat run`: studies in, answers with error bars out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.api import studies
from longfat.cli import CLAIM_FAILS, CLAIM_UNDECIDED, standard_output
from longfat.cli.arguments import completion
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import StudySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import RunResult
    from longfat.study import Study

_STANDARD_OUTPUT = File("-")
FAIL_ON = {"failed": ("fails", CLAIM_FAILS), "undecided": ("undecided", CLAIM_UNDECIDED)}
"""Values of --fail-on, each of which includes those before it, with the verdict and its exit code."""


@command_of(
    studies.run,
    without=["study", "report", "progress"],
    study=typer.Argument(metavar="STUDY", autocompletion=completion.studies),
    worlds=Annotated[list[str] | None, typer.Option("--world", metavar="WORLD")],
    repeats=typer.Option(metavar="N"),
    precision=typer.Option(metavar="PART"),
    budget=typer.Option(metavar="TIME"),
    max_trials=typer.Option(min=1, metavar="N"),
    settings=StudySettings,
    seed=typer.Option(metavar="N"),
    jobs=typer.Option(min=1, metavar="N"),
    executor=typer.Option(metavar="NAME"),
    scheduler=typer.Option(metavar="ADDRESS"),
    scheduler_file=typer.Option(metavar="FILE"),
    out=typer.Option(metavar="DIR"),
    shard=typer.Option(metavar="N/COUNT"),
    fail_on=typer.Option(metavar="VERDICT"),
)
def run(
    *,
    context: typer.Context,
    study: list[str],
    call: partial[Any],
    fail_on: str | None = None,
    details: bool = False,
    csv: File | None = None,
    junit: File | None = None,
    summary: File | None = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            callback=standard_output.reserve,
            help="Output as one JSON document; a list for several studies.",
        ),
    ] = False,
) -> None:
    """Run studies and check their claims; resume an interrupted run.

    \b
    Examples:
      longfat run arq/loss --quick --csv trials.csv
      longfat run arq/loss --precision claims --budget 10min
    \b
    Exit codes: 0 finished, 1 error, 2 bad input, 3 and 4 see --fail-on, 130 Ctrl-C.

    Args:
        study: Study files, or names of built-in studies such as arq/loss.
        fail_on: Claims that end the run with an exit code: failed (code 3), or undecided (code 4) as well.
        details: Output with all tables, verdicts and differences between worlds.
        csv: Output file for a row for each trial: .csv, or .parquet; - is standard output.
        junit: Output file with the claims as test cases for continuous integration: .xml.
        summary: Output file for verdicts and metrics in Markdown: .md.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.running import RunOptions
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.runner import Interrupted
    from longfat.runner.progress import Reporter
    from longfat.study import read_setting
    from longfat.system.progress import display

    given = call.keywords
    settings = [read_setting(text) for text in given["settings"] or ()]
    options = RunOptions(**{**given, "worlds": given["worlds"] or (), "settings": settings})
    if options.out is not None and len(study) > 1:
        raise ValueError("--out is the folder of one run: run the studies one by one")
    if csv is not None and len(study) > 1:
        raise ValueError("--csv is a file for one run: run the studies one by one")
    require_suffix("--csv", None if csv == _STANDARD_OUTPUT else csv, ".csv", ".parquet")
    require_suffix("--junit", junit, ".xml")
    require_suffix("--summary", summary, ".md")
    standard_output.reserve(context, csv == _STANDARD_OUTPUT and not as_json)
    # A mistake in any study is reported before the first one runs.
    loaded = [options.load(one) for one in study]
    _check_fail_on(fail_on, loaded)
    interrupt_on_sigterm()
    results = []
    try:
        for result in options.run(loaded, Reporter(display())):
            results.append(result)
            _show(result, csv, as_json=as_json, details=details, partial=options.awaits_others(result))
            if len(results) < len(loaded) and not as_json:
                typer.echo()
    except Interrupted as stop:
        typer.echo(f"longfat: {stop}", err=True)
        raise typer.Exit(130) from None
    if as_json:
        documents = [result.to_json() for result in results]
        standard_output.document(documents if len(study) > 1 else documents[0])
    complete = [result for result in results if not options.awaits_others(result)]
    if complete:
        _write_summaries(complete, junit, summary)
    _report_failures(results)
    if fail_on is not None:
        _report_claims(complete, fail_on)


def _check_fail_on(fail_on: str | None, studies: Sequence[Study]) -> None:
    """Raises ValueError for an unknown verdict, and for a study without claims, which cannot fail."""
    from longfat.study.vocabulary import allowed

    if fail_on is None:
        return
    if fail_on not in FAIL_ON:
        raise ValueError(f'--fail-on: "{fail_on}" is unknown; {allowed(fail_on, FAIL_ON)}')
    for study in studies:
        if not study.claims:
            raise ValueError(f"--fail-on: the study {study.name} has no claims")


def _report_claims(results: Sequence[RunResult], fail_on: str) -> None:
    """Ends with the code of the worst verdict that `fail_on` covers."""
    for verdict, code in list(FAIL_ON.values())[: list(FAIL_ON).index(fail_on) + 1]:
        found = [claim for result in results for claim in result.claims if claim.verdict == verdict]
        if found:
            which = ", ".join(dict.fromkeys(claim.id for claim in found))
            typer.echo(f"longfat: --fail-on {fail_on}: {verdict}: {which}", err=True)
            raise typer.Exit(code)


def _show(result: RunResult, csv: File | None, *, as_json: bool, details: bool, partial: bool) -> None:
    """Prints the answer, then writes the report. A `partial` run gets both from its last shard."""
    from longfat.presentation.run.report.page import write_report

    is_data = as_json or csv == _STANDARD_OUTPUT
    if not partial and not is_data:
        (_print_details if details else _print_answer)(result)
    report = None if partial else write_report(result)
    if csv is not None:
        _write_trials(result, csv)
    if report is not None:
        typer.echo(f"Report: {report}", err=is_data)


def _report_failures(results: Sequence[RunResult]) -> None:
    """Ends with code 1 if all trials of a study failed, or if trials were set aside."""
    from longfat.store import store
    from longfat.worlds.executor import KILLED

    failed = [result.study.name for result in results if not any(cell.n for cell in result.cells)]
    if failed:
        which = f" of {', '.join(failed)}" if len(results) > 1 else ""
        typer.echo(f"longfat: all trials{which} failed", err=True)
    aside = [file for result in results for file in store.set_aside_in(result.folder)]
    if aside:
        count = f"{len(aside)} {'trial' if len(aside) == 1 else 'trials'}"
        typer.echo(f"longfat: set {count} aside, each of which {KILLED}: {aside[0].parent}", err=True)
    if failed or aside:
        raise typer.Exit(1)


def _write_trials(result: RunResult, target: File) -> None:
    """Writes a row for each trial, as `to_polars` returns it."""
    from longfat.presentation.data_files import encoded
    from longfat.system.files import write_whole

    if target == _STANDARD_OUTPUT:
        standard_output.write(encoded(result.to_polars(), "csv").decode())
    else:
        write_whole(target, encoded(result.to_polars(), target.suffix.removeprefix(".")))
        typer.echo(f"Trials: {target}", err=True)


def _write_summaries(results: Sequence[RunResult], junit: File | None, summary: File | None) -> None:
    """Writes files for continuous integration. The last shard writes those of a run in shards."""
    from longfat.presentation.run import summary as presentation
    from longfat.system.files import write_whole

    if junit is not None:
        write_whole(junit, presentation.junit(results))
    if summary is not None:
        write_whole(summary, presentation.markdown(results).encode())


def _print_answer(result: RunResult) -> None:
    from longfat.presentation import tables
    from longfat.presentation.run.answer import answer

    console = tables.console()
    console.print(answer(result, console))
    sys.stdout.flush()


def _print_details(result: RunResult) -> None:
    from longfat.presentation import tables
    from longfat.presentation.run import notes
    from longfat.presentation.run.details import table, verdicts

    console = tables.console()
    console.print(table(result.study, result))
    if result.claims:
        console.print()
        console.print(verdicts(result.claims))
    console.print()
    if result.quick:
        console.print(notes.quick(result.study))
