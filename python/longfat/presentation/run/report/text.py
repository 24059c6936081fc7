"""The report's text: study, verdicts, failures, theory, method and environment."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from typing import TYPE_CHECKING

from longfat.analysis import grid, statistics
from longfat.analysis.prediction import ARQ_HEADER, ARQ_KINDS, UDP_IPV4, pipe
from longfat.analysis.relations import RESOLUTION
from longfat.presentation import formatting, series_names
from longfat.presentation.html.markup import (
    Content,
    Markup,
    bullets,
    facts,
    page_part,
    paragraph,
    render,
    tag,
)
from longfat.presentation.run import notes
from longfat.presentation.run.verdicts import SYMBOLS, badge, labelled
from longfat.study import units
from longfat.study.claims import MIN_TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longfat.results.run import CellResult, RunResult, Verdict

_PLURALS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}


def header(run: RunResult) -> Markup:
    """Title, source, description, key facts of the run, and notes."""
    study, environment = run.study, run.environment
    chips = [
        " + ".join(grid.worlds(run.cells) or study.worlds),
        f"{len(run.cells)} cells",
        notes.trials(run.cells),
        f"seed {study.seed}",
        str(environment.get("date", "")).replace("T", " ")[:16] + " UTC" if environment.get("date") else "",
        f"longfat {environment['longfat']}" if environment.get("longfat") else "",
    ]
    remarks = study.notes.split("\n\n") if isinstance(study.notes, str) else study.notes or []
    return render(
        [
            tag("h1", study.title),
            paragraph(["Source: ", study.source], "soft") if study.source else None,
            _prose(study.description, "lead"),
            bullets((chip for chip in chips if chip), "facts"),
            tag("p", notes.quick(study), class_="banner") if run.quick else None,
            bullets((*(remark.strip() for remark in remarks), *notes.computed(study))),
        ]
    )


def _prose(text: str | None, class_: str | None = None) -> list[Markup]:
    return [paragraph(part.strip(), class_) for part in (text or "").split("\n\n") if part.strip()]


def verdicts(run: RunResult) -> Content:
    """The claims with their verdicts, world by world."""
    if not run.claims:
        return paragraph("The study makes no claims.", "soft")
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in run.claims:
        by_claim.setdefault(verdict.id, []).append(verdict)
    several = len({verdict.world for verdict in run.claims}) > 1
    counts = Counter(verdict.verdict for verdict in run.claims)
    tally = [
        badge(word, f"{counts[word]} {word if counts[word] == 1 else _PLURALS[word]}")
        for word in SYMBOLS
        if counts[word]
    ]
    return [
        tag("div", tally, class_="tally"),
        tag("ul", [_claim(found, several=several) for found in by_claim.values()], class_="claims"),
    ]


def _claim(found: list[Verdict], *, several: bool) -> Markup:
    rows = []
    for verdict in found:
        world = [tag("b", f"{verdict.world}: ")] if several and verdict.world else []
        word = tag("span", labelled(verdict.verdict), class_=f"badge {verdict.verdict}")
        detail = tag("span", [*world, verdict.detail], class_="detail")
        rows.append(tag("div", [word, detail], class_="verdict"))
    text = tag("p", [tag("code", found[0].id, class_="id"), found[0].text], class_="text")
    return tag("li", [text, rows])


def failures(run: RunResult) -> Content:
    """Failed trials by error, and cautions; nothing without these."""
    lines = list(notes.failures(run.cells))
    noted = [paragraph(line, "note") for line in notes.cautions(run.study, run.cells)]
    if not lines:
        return noted or None
    return [
        *noted,
        bullets(lines),
        paragraph(
            "Means and intervals cover the successful trials; ! marks cells with failed trials.", "note"
        ),
    ]


def theory_lines(run: RunResult) -> Iterable[tuple[str, str]]:
    """Each protocol with the closed forms for the main metric, or why there is none."""
    metric = grid.shown(run.study, run.cells)[0]
    found: dict[str, dict[str, None]] = {}
    for cell in run.cells:
        prediction = grid.theory_of(cell, metric)
        note = prediction.note + (" (exact)" if prediction.exact else "")
        protocol = series_names.protocol_name(run.study, cell.cell)
        found.setdefault(protocol, {})[note] = None
    return [(protocol, note) for protocol, notes in found.items() for note in notes]


def theory(run: RunResult) -> Content:
    """The closed forms with their assumptions, and the path's bandwidth-delay product."""
    lines = list(theory_lines(run))
    if not lines:
        return None
    kinds = {str(cell.cell.spec["protocol"].get("kind")) for cell in run.cells}
    sources = []
    if kinds & set(ARQ_KINDS):
        sources.append(page_part("theory_arq.html", header=str(ARQ_HEADER), below=str(UDP_IPV4)))
    if kinds - set(ARQ_KINDS):
        sources.append(page_part("theory_tcp.html"))
    file = run.study.workload.get("kind") == "file"
    finite = "A finite file is slightly slower because its last window drains." if file else ""
    return page_part("theory.html", lines=facts(lines), finite=finite, notes=sources, products=_products(run))


def _products(run: RunResult) -> Content:
    """The bandwidth-delay products of the run: the windows that fill the paths."""
    filled = (pipe(cell.cell.spec) for cell in run.cells)
    packets = {round(packets, 1) for packets in filled if packets is not None}
    if not packets:
        return None
    low, high = min(packets), max(packets)
    span = formatting.digits(low) if low == high else f"{formatting.digits(low)} to {formatting.digits(high)}"
    return paragraph(
        f"Bandwidth-delay product: {span} packets. With a smaller window, the path is idle between ACKs."
    )


def method(run: RunResult) -> Content:
    """The statistical method."""
    counts = sorted({cell.n for cell in run.cells if cell.n})
    return page_part(
        "method.html",
        used="; ".join(dict.fromkeys(statistics.method(n) for n in counts)) or "none",
        trials=notes.trials(run.cells),
        bootstrap_from=str(statistics.BOOTSTRAP_FROM),
        expansion_from=str(statistics.EXPANSION_FROM),
        resolution=f"{RESOLUTION:.0%}",
        min_trials=str(MIN_TRIALS),
    )


def rerun(run: RunResult) -> Content:
    """The command and the environment of the run."""
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
            "In the world sim, the same study, seed and version give bit-identical records. "
            "In relay and netns, the losses are the same and the timing is that of the machine.",
            "note",
        ),
        facts([*known, *others]),
    ]


def _lasted(cell: CellResult) -> float:
    """Seconds that a trial of this cell lasts: its workload's duration or mean completion time; else 0."""
    duration = units.number(cell.cell.spec["workload"].get("duration"))
    if duration is not None:
        return duration
    taken = cell.metrics.get("completion_s")
    return taken.mean if taken is not None and math.isfinite(taken.mean) else 0.0


def footer(run: RunResult) -> Markup:
    """The number and length of the trials, and the folder of their records."""
    seconds = sum(_lasted(cell) * cell.n for cell in run.cells)
    trials = sum(cell.n for cell in run.cells)
    text = f"{trials} trials"
    text += f", {formatting.digits(seconds / 60)} minutes of transfers" if seconds else ""
    return tag("footer", [f"{text}. Records: ", tag("code", "records"), " beside this page (Parquet)."])
