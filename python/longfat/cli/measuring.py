"""Parts that the measuring commands (ping, transact, path, echo) share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from longfat.api.defaults import IpVersion

if TYPE_CHECKING:
    import polars


def ip_version(four: bool, six: bool) -> IpVersion | None:
    """Returns the requested version of IP, None for any. Raises ValueError for both options."""
    if four and six:
        raise ValueError("-4 and -6 exclude each other")
    return 4 if four else 6 if six else None


def write_samples(target: Path, frame: polars.DataFrame) -> None:
    """Writes all samples as Parquet or CSV, by the file's suffix."""
    from longfat.files import write_whole
    from longfat.presentation.data_files import encoded

    write_whole(target, encoded(frame, target.suffix.removeprefix(".")))


def finish(*, interrupted: bool, measured: bool) -> None:
    """Exits with an error code after Ctrl-C, or if nothing was measured."""
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR

    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not measured:
        raise typer.Exit(SYSTEM_ERROR)
