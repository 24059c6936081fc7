"""The index of runs: a page with a row for each run of a folder, the newest first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from longfat.presentation.html.document import document
from longfat.presentation.html.markup import Markup, paragraph, table, tag
from longfat.presentation.run.verdicts import SYMBOLS, badge
from longfat.system.remote_path import Location, location

if TYPE_CHECKING:
    from longfat.results.run import RunResult, VerdictWord


@dataclass(frozen=True)
class Entry:
    """A run as the index shows it. `verdicts` counts the verdicts by word."""

    folder: Location
    title: str
    date: str
    worlds: str
    trials: int
    verdicts: dict[VerdictWord, int]

    @classmethod
    def of(cls, run: RunResult) -> Entry:
        """Returns the entry of a run."""
        words = [claim.verdict for claim in run.claims]
        return cls(
            folder=location(str(run.folder)),
            title=run.study.title,
            date=str(run.environment.get("date", "")).replace("T", " ")[:16],
            worlds=" + ".join(dict.fromkeys(cell.cell.world for cell in run.cells)),
            trials=sum(cell.tried for cell in run.cells),
            verdicts={word: words.count(word) for word in SYMBOLS if word in words},
        )


def page(folder: Location, entries: Sequence[Entry]) -> str:
    """Returns the index of a folder as HTML.

    Runs at URLs have no links, because browsers do not read object storage.
    """
    heads = [tag("th", name) for name in ("Run", "Question", "Measured (UTC)", "World", "Trials", "Claims")]
    newest = sorted(entries, key=lambda entry: entry.date, reverse=True)
    body = [
        tag("h1", "Runs"),
        paragraph([f"{len(entries)} in ", tag("code", str(folder))], "soft"),
        table([heads], [tag("tr", [_name(folder, entry), *_cells(entry)]) for entry in newest]),
    ]
    if not isinstance(folder, Path):
        body.append(paragraph([tag("code", "longfat open URL"), " opens the report of a run."], "soft"))
    return document("Runs", body)


def _name(folder: Location, entry: Entry) -> Markup:
    if not (isinstance(entry.folder, Path) and isinstance(folder, Path)):
        return tag("th", tag("code", str(entry.folder)), class_="name")
    report = Path(os.path.relpath(entry.folder / "report.html", folder)).as_posix()
    name = Path(os.path.relpath(entry.folder, folder)).as_posix()
    return tag("th", tag("a", name, href=quote(report)), class_="name")


def _cells(entry: Entry) -> Iterator[Markup]:
    yield tag("td", entry.title, class_="text")
    yield tag("td", entry.date)
    yield tag("td", entry.worlds)
    yield tag("td", f"{entry.trials:,}")
    yield tag("td", [badge(word, f"{count} ") for word, count in entry.verdicts.items()])
