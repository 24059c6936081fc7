"""Results of runs for continuous integration: a Markdown summary and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from longfat.analysis import grid
from longfat.presentation import formatting, names
from longfat.presentation.run.verdicts import labelled
from longfat.study.vocabulary import unit

if TYPE_CHECKING:
    from longfat.results.run import CellResult, RunResult, Verdict


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
        metrics = grid.shown(result.study, result.cells)
        titles = [names.metric_title(metric) for metric in metrics]
        rows = [_row(result, cell, metrics) for cell in result.cells]
        lines += [*markdown_table(["world", "protocol", "point", *titles, "n"], rows), ""]
        lines += [f"Means ± 95 % confidence half-width. Records: `{result.folder}`", ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(result: RunResult, cell: CellResult, metrics: Sequence[str]) -> list[str]:
    shown = []
    for metric in metrics:
        found = cell.metrics.get(metric)
        if found is None:
            shown.append(formatting.DASH)
            continue
        scale, name = formatting.scale_for([found.value], unit(metric))
        shown.append(f"{formatting.plus_minus(found, scale)} {name}".strip())
    where = grid.point_params(result.study, cell.cell)
    count = f"{cell.n} ({cell.tried - cell.n} failed)" if cell.tried > cell.n else str(cell.n)
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
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(suite: ElementTree.Element, name: str, claim: Verdict) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=f"{claim.id} [{claim.world}]", classname=name)
    detail = f"{claim.text} ({claim.detail})"
    if claim.verdict == "fails":
        ElementTree.SubElement(case, "failure", message=detail, type="fails").text = detail
    elif claim.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=f"undecided: {detail}")
    else:
        ElementTree.SubElement(case, "system-out").text = detail
