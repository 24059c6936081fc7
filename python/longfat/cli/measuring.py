"""Parts that `longfat ping` and `longfat transact` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from longfat.api.defaults import IpVersion
from longfat.cli import standard_output

if TYPE_CHECKING:
    from longfat.api.round_trips import RoundTrips
    from longfat.api.transactions import MeasuredTransactions

Found = TypeVar("Found", "RoundTrips", "MeasuredTransactions")


def ip_version(four: bool, six: bool) -> IpVersion | None:
    """Returns the requested version of IP, None for any. Raises ValueError for both options."""
    if four and six:
        raise ValueError("-4 and -6 exclude each other")
    return 4 if four else 6 if six else None


def measured(
    call: Callable[..., Found], ip: IpVersion | None, *, samples: Path | None, out: Path | None, as_json: bool
) -> Found:
    """Measures, writes the requested files, and prints the results as a table or as JSON."""
    from longfat.cli.arguments.formats import require_folder, require_suffix
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables
    from longfat.presentation.data_files import encoded
    from longfat.system.files import write_whole

    require_suffix("--samples", samples, ".parquet", ".csv")
    require_folder("--out", out)
    interrupt_on_sigterm()
    found = call(ip=ip)
    if samples is not None and found.has_rows:
        write_whole(samples, encoded(found.to_polars(), samples.suffix.removeprefix(".")))
    if out is not None and found.drawing() is not None:
        write_whole(out, found.page().encode())
    if as_json:
        standard_output.document(found.document())
        return found
    if found.has_rows:
        tables.show(found.table())
    for text in found.remarks():
        typer.echo(text)
    return found


def finish(*, interrupted: bool, measured: bool) -> None:
    """Exits with an error code after Ctrl-C, or if nothing was measured."""
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR

    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not measured:
        raise typer.Exit(SYSTEM_ERROR)
