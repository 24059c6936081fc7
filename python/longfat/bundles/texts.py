"""The texts of a bundle for readers: README and citations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.study.worlds import VIRTUAL

if TYPE_CHECKING:
    from longfat.presentation.run.displayed import Run

ANONYMOUS = "Anonymous"
_CHANGED = "-dirty"
"""How the commit of a working copy with changes ends."""


def readme(run: Run, archive: str, about: Mapping[str, Any], files: Sequence[str]) -> str:
    """Returns the README: the question, the verdicts, and the commands that repeat the run."""
    environment = run.environment
    machine = ", ".join(str(environment[key]) for key in ("cpu", "kernel") if environment.get(key))
    verdicts = [f"- {one.verdict}: {one.text} ({one.world})" for one in run.claims]
    named, changed, _ = str(about["commit"] or "").partition(_CHANGED)
    commit = f" (commit {named}{', with changes that are in no commit' if changed else ''})" if named else ""
    code = " --allow-code" if any(name.endswith(".py") for name in files) else ""
    command, compared = _repetition(run.study.worlds, f"longfat reproduce {archive}{code}")
    used = [f"It uses {', '.join(f'`{name}`' for name in files)}."] if files else []
    return "\n".join(
        [
            f"# {run.study.title}",
            "",
            *([f"Source: {run.study.source}", ""] if run.study.source else []),
            *([run.study.description.strip(), ""] if run.study.description else []),
            f"A run of longfat {about['longfat']} on {machine}. Date: {environment.get('date', 'unknown')}.",
            f"Bundled by longfat {about['bundled_by']}{commit}, with the packages of `requirements.txt`.",
            f"`report.html` shows the results, `study.toml` is the study. {' '.join(used)}".rstrip(),
            "",
            *(["## Claims", "", *verdicts, ""] if verdicts else []),
            "## Repeat it",
            "",
            f"With longfat {about['longfat']}:",
            "",
            "```sh",
            command,
            "```",
            "",
            compared,
            "",
        ]
    )


def _repetition(worlds: Sequence[str], command: str) -> tuple[str, str]:
    """Returns the command that repeats a run, and what it compares.

    >>> _repetition(["netns"], "longfat reproduce b.zip")[0]
    'longfat run study.toml'
    """
    others = " and ".join(world for world in worlds if world != VIRTUAL)
    if VIRTUAL not in worlds:
        text = f"The trials run on wall time in {others}: the command measures them again, with other values."
        return "longfat run study.toml", text
    of = f" of {VIRTUAL}" if others else ""
    compared = f"The command runs the study in a fresh folder, and compares all records{of} bit by bit."
    if others:
        compared += f" Those of {others} run on wall time: it neither repeats nor compares them."
    return command, compared


def citation_cff(title: str, authors: Sequence[str], about: Mapping[str, Any], date: str) -> str:
    """Returns the citation as Citation File Format 1.2.0."""
    return "\n".join(
        [
            "cff-version: 1.2.0",
            "message: If you use these results, please cite them as below.",
            "type: dataset",
            f"title: {json.dumps(title, ensure_ascii=False)}",
            "authors:",
            *(f"  - name: {json.dumps(author, ensure_ascii=False)}" for author in authors or [ANONYMOUS]),
            *([f"date-released: {date[:10]}"] if date else []),
            "references:",
            "  - type: software",
            "    title: longfat",
            f"    version: {json.dumps(about['longfat'])}",
            "    authors:",
            "      - name: The longfat authors",
            "",
        ]
    )


def bibtex(run: Run, authors: Sequence[str], about: Mapping[str, Any], date: str) -> str:
    """Returns the citation as BibTeX."""
    title, made = run.study.title, "Simulated" if set(run.study.worlds) == {VIRTUAL} else "Measured"
    escaped = "".join(f"\\{one}" if one in "&%$#_{}" else one for one in title)
    return "\n".join(
        [
            "@misc{longfat-run,",
            f"  title  = {{{escaped}}},",
            f"  author = {{{' and '.join(authors or [ANONYMOUS])}}},",
            *([f"  year   = {{{date[:4]}}},"] if date else []),
            f"  note   = {{{made} with longfat {about['longfat']}}},",
            "}",
            "",
        ]
    )
