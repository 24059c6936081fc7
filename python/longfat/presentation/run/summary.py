"""Results of runs for continuous integration: a Markdown summary and JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from longfat.analysis import grid
from longfat.presentation import formatting
from longfat.presentation.run import notes
from longfat.presentation.run.columns import Column
from longfat.presentation.run.verdicts import labelled

if TYPE_CHECKING:
    from longfat.results.run import CellResult, RunResult, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a table as lines of Markdown.

    >>> markdown_table(["a", "b"], [["1", "x"]])
    ['| a | b |', '| --- | --- |', '| 1 | x |']
    """
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [columns, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return [lines[0], f"| {' | '.join('---' for _ in columns)} |", *lines[1:]]


def markdown(results: Sequence[RunResult]) -> str:
    """Returns the verdicts and the shown metrics of each run."""
    lines: list[str] = []
    for result in results:
        lines += [f"## {result.study.title}", ""]
        if result.claims:
            rows = [[labelled(one.verdict), one.world, one.text, one.detail] for one in result.claims]
            lines += [*markdown_table(["verdict", "world", "claim", "figures"], rows), ""]
        columns = [Column.of(metric, result.cells) for metric in grid.shown(result.study, result.cells)]
        rows = [_row(result, cell, columns) for cell in result.cells]
        titles = [column.title for column in columns]
        lines += [*markdown_table(["world", "protocol", "point", *titles, "n"], rows), ""]
        cut = [cell for cell in result.cells if any(column.is_cut(cell) for column in columns)]
        how = f"Means ± half-width of {notes.confidence(result.cells)}"
        how += f"; {notes.bounded(cut)}" if cut else ""
        lines += [f"{how}. Records: `{result.folder}`", ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(result: RunResult, cell: CellResult, columns: Sequence[Column]) -> list[str]:
    where = grid.point_params(result.study, cell.cell)
    count = f"{cell.n} ({cell.tried - cell.n} failed)" if cell.tried > cell.n else str(cell.n)
    shown = [column.measured(cell) for column in columns]
    return [cell.cell.world, cell.cell.protocol, formatting.place(where), *shown, count]


def junit(results: Sequence[RunResult]) -> bytes:
    """Returns claims as test cases of JUnit XML: a suite for each run, and a case for each claim and world.

    A claim that fails is a failure, and an undecided one is skipped, since more repeats decide it. A cell
    whose trials all failed is an error.
    """
    root = ElementTree.Element("testsuites", name="longfat")
    for result in results:
        broken = [cell for cell in result.cells if not cell.n]
        counts = {
            "tests": len(result.claims) + len(broken),
            "failures": sum(claim.verdict == "fails" for claim in result.claims),
            "errors": len(broken),
            "skipped": sum(claim.verdict == "undecided" for claim in result.claims),
        }
        about = {key: str(value) for key, value in counts.items()}
        suite = ElementTree.SubElement(root, "testsuite", {"name": result.study.name, **about})
        for claim in result.claims:
            _case(suite, result.study.name, claim)
        for cell in broken:
            place = ", ".join(filter(None, (cell.cell.protocol, formatting.place(cell.cell.params))))
            case = ElementTree.SubElement(
                suite, "testcase", name=f"{place} [{cell.cell.world}]", classname=result.study.name
            )
            reasons = "; ".join(f"{count} times: {reason}" for reason, count in cell.failures.items())
            ElementTree.SubElement(case, "error", message=f"all trials failed: {reasons}")
    _replace_forbidden(root)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _replace_forbidden(root: ElementTree.Element) -> None:
    """Replaces characters that XML 1.0 does not allow, such as those of a terminal's colours in an error."""
    for element in root.iter():
        for key, value in element.items():
            element.set(key, _FORBIDDEN.sub(_REPLACEMENT, value))
        if element.text is not None:
            element.text = _FORBIDDEN.sub(_REPLACEMENT, element.text)


def _case(suite: ElementTree.Element, name: str, claim: Verdict) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=f"{claim.id} [{claim.world}]", classname=name)
    detail = f"{claim.text} ({claim.detail})"
    if claim.verdict == "fails":
        ElementTree.SubElement(case, "failure", message=detail, type="fails").text = detail
    elif claim.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=f"undecided: {detail}")
    else:
        ElementTree.SubElement(case, "system-out").text = detail
