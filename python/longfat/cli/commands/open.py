"""`longfat open`: an index of runs, or the report of one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from longfat.cli.arguments.from_function import command

if TYPE_CHECKING:
    from longfat.system.remote_path import Location


@command()
def open_(
    run: str | None = None,
    *,
    folder: str = "runs",
    browser: bool = True,
) -> None:
    """Show an index of all runs, or the report of one run, in a browser.

    \b
    Examples:
      longfat open
      longfat open arq/loss

    Args:
        run: Folder or URL of a run, or name of its study; by default an index of all runs.
        folder: Folder or URL with the runs.
        browser: Whether a browser shows the page.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.system.remote_path import location

    runs = location(folder)
    page = _index(runs) if run is None else _report(run, runs)
    typer.echo(str(page))
    if browser:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _copy(of: Location, content: bytes) -> Path:
    """Writes the page of a URL into the user's cache folder, over the one of an earlier call."""
    from longfat.system.files import write_whole
    from longfat.system.user_folders import cache_folder

    name = hashlib.sha256(str(of).encode()).hexdigest()[:16]
    file = cache_folder() / "pages" / f"{name}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, content)
    return file


def _report(run: str, folder: Location) -> Path:
    from longfat.store.store import REPORT_FILE, RUN_FILE
    from longfat.system.remote_path import location

    named: Location = location(run)
    places = (named, folder / run) if isinstance(named, Path) else (named,)
    found = next((one for one in places if (one / RUN_FILE).is_file()), None)
    if found is None:
        _check_bucket(places[-1])
        where = f"here or in {folder}; longfat open lists all runs" if isinstance(named, Path) else "here"
        raise ValueError(f"{run}: no run {where}")
    if not (found / REPORT_FILE).is_file():
        raise ValueError(f"{found}: this run has no report yet; longfat run writes it")
    report = found / REPORT_FILE
    return report if isinstance(report, Path) else _copy(report, report.read_bytes())


def _check_bucket(place: Location) -> None:
    if not isinstance(place, Path) and not place.bucket.exists():
        raise ValueError(f"{place}: the bucket {place.bucket.name} does not exist")


def _index(folder: Location) -> Path:
    from longfat.api.runs import load_run
    from longfat.presentation.run.index import Entry, page
    from longfat.store.store import INDEX_FILE, REPORT_FILE, RUN_FILE
    from longfat.system.files import write_whole

    found = sorted(one.parent for one in folder.rglob(RUN_FILE) if (one.parent / REPORT_FILE).is_file())
    if not found:
        _check_bucket(folder)
        raise ValueError(f"{folder}: no runs with a report; longfat run makes one")
    entries = []
    for one in found:
        try:
            entries.append(Entry.of(load_run(one)))
        except (ValueError, OSError) as error:
            typer.echo(f"longfat: {one}: not listed: {error}", err=True)
    content = page(folder, entries).encode()
    if not isinstance(folder, Path):
        return _copy(folder, content)
    write_whole(folder / INDEX_FILE, content)
    return folder / INDEX_FILE
