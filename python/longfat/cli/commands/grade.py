"""`longfat grade`: the claims of a lab study for a folder of submissions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from longfat.cli import CLAIM_FAILS, CLAIM_UNDECIDED
from longfat.cli.arguments.from_function import command

if TYPE_CHECKING:
    from longfat.api.grading import Grade

_MARKS = {"holds": "✓", "fails": "✗", "undecided": "?", "not run": "-"}


@command(
    submissions=typer.Argument(metavar="SUBMISSIONS"),
    study=typer.Option(metavar="STUDY"),
    jobs=typer.Option(min=1, metavar="N"),
)
def grade(
    submissions: Path,
    *,
    study: str,
    csv: Path | None = None,
    time: str = "60s",
    memory: str = "2GB",
    jobs: int = 2,
) -> None:
    """Grade a folder of submissions, studies or controllers, by the claims of a lab study.

    \b
    Examples:
      longfat grade submissions --study lab.toml
      longfat grade submissions --study lab.toml --csv grades.csv --time 2min
    \b
    Exit codes: 0 all claims hold, 2 bad input, 3 a claim fails or a submission has no result, 4 undecided.

    Args:
        submissions: Folder with a file, or a folder with one file, for each submission.
        study: Lab study: its claims are graded, and controllers replace its protocol "submission".
        csv: Output file for a row for each submission: .csv, or .parquet.
        time: Limit of the duration of each submission.
        memory: Limit of the memory of each submission.
        jobs: Number of concurrent submissions.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api import grading
    from longfat.api.transfer_progress import printable
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.signals import interrupt_on_sigterm

    interrupt_on_sigterm()
    require_suffix("--csv", csv, ".csv", ".parquet")
    found = grading.submissions(submissions)
    width = max(len(printable(one.name)) for one in found)

    def show(grade: Grade) -> None:
        verdicts = " ".join(f"{_MARKS[verdict]} {key}" for key, verdict in grade.verdicts.items())
        name = printable(grade.submission)
        typer.echo(f"{name:<{width}}  {grade.holds}/{len(grade.verdicts)}  {verdicts}")
        for key, verdict in grade.verdicts.items():
            if verdict in ("fails", "undecided"):
                typer.echo(f"{'':<{width}}       {key}: {printable(grade.details.get(key, verdict))}")
        if grade.error:
            typer.echo(f"{'':<{width}}       {grade.error}")

    seconds, size = _limit("--time", time, "duration"), int(_limit("--memory", memory, "size"))
    graded = grading.grades(found, study, seconds=seconds, memory=size, jobs=jobs, done=show)
    if csv is not None:
        import polars as pl

        from longfat.presentation.data_files import encoded
        from longfat.system.files import write_whole

        write_whole(csv, encoded(pl.DataFrame(list(grading.rows(graded))), csv.suffix.removeprefix(".")))
        typer.echo(f"Grades: {csv}", err=True)
    verdicts = {verdict for grade in graded for verdict in grade.verdicts.values()}
    if verdicts & {"fails", grading.NOT_RUN}:
        raise typer.Exit(CLAIM_FAILS)
    if "undecided" in verdicts:
        raise typer.Exit(CLAIM_UNDECIDED)


_EXAMPLES = {"duration": "60s", "size": "2GB"}


def _limit(option: str, text: str, dimension: str) -> float:
    from longfat.study import units

    found = units.parse(text, _EXAMPLES[dimension])
    if found.dimension != dimension or found.value <= 0:
        raise ValueError(f"{option} {text}: allowed: a {dimension} above 0, such as {_EXAMPLES[dimension]}")
    return float(found.value)
