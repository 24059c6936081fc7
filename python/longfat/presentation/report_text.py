"""The report's words: what was asked, what the claims' verdicts are, what failed, how it was found."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from longfat.analysis import grid, statistics
from longfat.analysis.prediction import ARQ_HEADER, ARQ_KINDS, UDP_IPV4, pipe
from longfat.analysis.relations import RESOLUTION
from longfat.presentation import cautions, formatting, terminal
from longfat.presentation.html import Content, Markup, bullets, facts, page_part, paragraph, render, tag
from longfat.study import units
from longfat.study.claims import MIN_TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longfat.results import CellResult, RunResult, Verdict

_WORDS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}
"""Verdicts, and how many of them are told."""
_SYMBOLS = {"holds": "\N{CHECK MARK}", "fails": "\N{BALLOT X}", "undecided": "?"}


def header(run: RunResult) -> Markup:
    """Title, source, question, notes, and the run in a few facts."""
    study, environment = run.study, run.environment
    chips = [
        " + ".join(grid.worlds(run.cells) or study.worlds),
        f"{len(run.cells)} cells",
        grid.trials_text(run),
        f"seed {study.seed}",
        str(environment.get("date", "")).replace("T", " ")[:16] + " UTC" if environment.get("date") else "",
        f"longfat {environment['longfat']}" if environment.get("longfat") else "",
    ]
    notes = study.notes.split("\n\n") if isinstance(study.notes, str) else study.notes or []
    return render(
        [
            tag("h1", study.title),
            paragraph(["Source: ", study.source], "soft") if study.source else None,
            _prose(study.description, "lead"),
            bullets((chip for chip in chips if chip), "facts"),
            tag("p", grid.quick_note(study), class_="banner") if run.quick else None,
            bullets(note.strip() for note in notes),
        ]
    )


def _prose(text: str | None, class_: str | None = None) -> list[Markup]:
    return [paragraph(part.strip(), class_) for part in (text or "").split("\n\n") if part.strip()]


def verdicts(run: RunResult) -> Content:
    """The claims with their verdicts, world by world."""
    if not run.claims:
        return paragraph("The study makes no claim; the charts and tables below are its answer.", "soft")
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in run.claims:
        by_claim.setdefault(verdict.id, []).append(verdict)
    several = len({verdict.world for verdict in run.claims}) > 1
    counts = {word: sum(v.verdict == word for v in run.claims) for word in _WORDS}
    tally = [
        tag("span", f"{_SYMBOLS[word]} {count} {word if count == 1 else _WORDS[word]}", class_=word)
        for word, count in counts.items()
        if count
    ]
    return [
        tag("div", tally, class_="tally"),
        tag("ul", [_claim(found, several=several) for found in by_claim.values()], class_="claims"),
    ]


def _claim(found: list[Verdict], *, several: bool) -> Markup:
    rows = []
    for verdict in found:
        world = [tag("b", f"{verdict.world}: ")] if several and verdict.world else []
        rows.append(
            tag(
                "div",
                [
                    tag(
                        "span",
                        f"{_SYMBOLS[verdict.verdict]} {verdict.verdict}",
                        class_=f"badge {verdict.verdict}",
                    ),
                    tag("span", [*world, verdict.detail], class_="detail"),
                ],
                class_="verdict",
            )
        )
    text = tag("p", [tag("code", found[0].id, class_="id"), found[0].text], class_="text")
    return tag("li", [text, rows])


def failures(run: RunResult) -> Content:
    """Trials without a result, by their error; nothing where all succeeded."""
    lines = [line.removeprefix("! ") for line in terminal.failure_lines(run.cells)]
    dropped = [paragraph(line, "note") for line in cautions.host_drops(run.cells)]
    if not lines:
        return dropped or None
    return [
        *dropped,
        bullets(lines),
        paragraph("Means and intervals are of the trials that succeeded; a cell marked ! lost some.", "note"),
    ]


def theory_lines(run: RunResult) -> Iterable[tuple[str, str]]:
    """Each protocol, and the closed forms used for the main metric or why there is none."""
    metric = grid.shown(run.study, run.cells)[0]
    found: dict[str, dict[str, None]] = {}
    for cell in run.cells:
        prediction = grid.theory_of(cell, metric)
        note = prediction.note + (" (exact)" if prediction.exact else "")
        found.setdefault(cell.cell.protocol, {})[note] = None
    return [(protocol, note) for protocol, notes in found.items() for note in notes]


def theory(run: RunResult) -> Content:
    """What the dashed lines are, what they assume, and the path's bandwidth-delay product."""
    lines = list(theory_lines(run))
    if not lines:
        return None
    kinds = {str(cell.cell.spec["protocol"].get("kind")) for cell in run.cells}
    notes = []
    if kinds & set(ARQ_KINDS):
        notes.append(page_part("theory_arq.html", header=str(ARQ_HEADER), below=str(UDP_IPV4)))
    if kinds - set(ARQ_KINDS):
        notes.append(page_part("theory_tcp.html"))
    file = run.study.workload.get("kind") == "file"
    begin = "A file of finite length is a little slower, since its last window drains." if file else ""
    return page_part("theory.html", lines=facts(lines), begin=begin, notes=notes, products=_products(run))


def _products(run: RunResult) -> Content:
    """The bandwidth-delay products of the run, which say what window would fill the path."""
    filled = (pipe(cell.cell.spec) for cell in run.cells)
    packets = {round(packets, 1) for packets in filled if packets is not None}
    if not packets:
        return None
    low, high = min(packets), max(packets)
    span = formatting.digits(low) if low == high else f"{formatting.digits(low)} to {formatting.digits(high)}"
    return paragraph(
        f"Bandwidth-delay product: {span} packets. A smaller window leaves the path idle between its ACKs."
    )


def method(run: RunResult) -> Content:
    """The statistical rule, in full."""
    counts = sorted({cell.n for cell in run.cells if cell.n})
    return page_part(
        "method.html",
        used="; ".join(dict.fromkeys(statistics.method(n) for n in counts)) or "none",
        trials=grid.trials_text(run),
        bootstrap_from=str(statistics.BOOTSTRAP_FROM),
        expansion_from=str(statistics.EXPANSION_FROM),
        resolution=f"{RESOLUTION:.0%}",
        min_trials=str(MIN_TRIALS),
    )


def rerun(run: RunResult) -> Content:
    """The command, and where and when the numbers were measured."""
    environment = run.environment
    argv = [str(part) for part in environment.get("argv") or []]
    named = {
        "longfat": "longfat",
        "date": "Measured",
        "cpu": "CPU",
        "cores": "Cores",
        "kernel": "Kernel",
        "machine": "Machine",
        "python": "Python",
    }
    known = [(title, str(environment[key])) for key, title in named.items() if key in environment]
    others = [(key, str(value)) for key, value in environment.items() if key not in named and key != "argv"]
    return [
        tag("pre", tag("code", shlex.join(argv))) if argv else None,
        paragraph(
            "In the world sim the same study, seed and version give the same records, bit for bit. Real "
            "processes and clocks (relay) meet the same losses at other times.",
            "note",
        ),
        facts([*known, *others]),
    ]


def _lasted(cell: CellResult) -> float:
    """Seconds of a trial of this cell: what its workload says, else what its transfer took; 0 if unknown."""
    duration = units.number(cell.cell.spec["workload"].get("duration"))
    if duration is not None:
        return duration
    taken = cell.metrics.get("completion_s")
    return taken.mean if taken is not None and math.isfinite(taken.mean) else 0.0


def footer(run: RunResult) -> Markup:
    """Where the records lie."""
    seconds = sum(_lasted(cell) * cell.n for cell in run.cells)
    trials = sum(cell.n for cell in run.cells)
    told = f"{trials} trials"
    told += f", {formatting.digits(seconds / 60)} minutes of transfers" if seconds else ""
    return tag("footer", [f"{told}. Records: ", tag("code", f"{run.folder}/records"), " (Parquet)."])
