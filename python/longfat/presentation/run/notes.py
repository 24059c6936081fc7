"""Sentences about a run: how to read its numbers, what failed, and cautions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from longfat.analysis import grid, marking
from longfat.analysis import limits as limited
from longfat.analysis.precision import imprecise
from longfat.analysis.prediction import sharing
from longfat.analysis.prediction.model import NO_FORM
from longfat.analysis.statistics import trials_needed
from longfat.presentation import formatting, names
from longfat.presentation.run import censored
from longfat.results.run import CONFIDENCE
from longfat.study import cells as cells_of
from longfat.study.vocabulary import AT_HOST, check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longfat.analysis.prediction import Prediction
    from longfat.results.run import CellResult
    from longfat.study import Study

AT_MOST = "\N{LESS-THAN OR EQUAL TO}"
HOST_DROPS = "host_drops"
FEW_TRIALS = 10
"""Below this number of trials, more of them narrow an interval considerably."""
_MOST_VALUES = 4
"""The number of values that the line of an expression lists."""
_NO_NAME = "none"


def quick(study: Study) -> str:
    """What `--quick` cut from a study."""
    cuts = "; ".join(study.cuts) or "nothing was cut"
    verdicts = ", and verdicts can differ" if study.claims else ""
    return f"Quick look: {cuts}. Without --quick the study runs as written{verdicts}."


def computed(study: Study) -> Iterator[str]:
    """A line for each key with expressions: their values, in the order of the cells."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells_of(study):
        for key, (text, value) in cell.computed.items():
            found.setdefault(key, {}).setdefault(text, {})[str(value)] = None
    for key, texts in found.items():
        shown = [f"{text} = {_several(list(values))}" for text, values in texts.items()]
        yield f"{key}: {_several(shown, separator='; ')}"


def _several(texts: list[str], separator: str = ", ") -> str:
    left = len(texts) - _MOST_VALUES
    more = f"{separator}{left} more" if left > 0 else ""
    return separator.join(texts[:_MOST_VALUES]) + more


def trials(results: Sequence[CellResult]) -> str:
    """The number of trials per cell, or its range.

    >>> trials([])
    'no trials'
    """
    counts = sorted({result.n for result in results})
    if not counts:
        return "no trials"
    return f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"


def confidence(results: Sequence[CellResult]) -> str:
    """The confidence of intervals as text, with a note if they are valid under repeated looks.

    >>> confidence([])
    '95 % confidence'
    """
    repeated = any(result.confidence > CONFIDENCE for result in results)
    return f"95 % confidence{', valid over all looks,' if repeated else ''}"


def bounded(results: Sequence[CellResult]) -> str:
    """How to read intervals in brackets, with the fix if one of their cells has few trials.

    >>> from longfat.results.run import Cell, CellResult
    >>> bounded([CellResult(Cell("sim", "reno", {}, {}), 3, {}, {}, {})])
    "[low, high] where ± leaves the metric's range; n = 3 is small: more trials (--repeats) narrow it"
    """
    few = sorted({result.n for result in results if result.n < FEW_TRIALS})
    fix = f"; n = {few[0]} is small: more trials (--repeats) narrow it" if few else ""
    return f"[low, high] where ± leaves the metric's range{fix}"


def theory(result: CellResult, metric: str, scale: float) -> str:
    """The theoretical value for a table; empty without one.

    ~ marks an approximation, ≤ an upper bound. A fair share is a reference, so it has neither.
    """
    expected = grid.theory_of(result, metric)
    value = expected.bound if expected.value is None else expected.value
    if value is None:
        return ""
    sign = AT_MOST if expected.value is None else "" if expected.exact or is_share(expected) else "~"
    return f"{sign}{formatting.digits(value / scale)}"


def is_share(expected: Prediction) -> bool:
    """Whether a theoretical value is the max-min fair share."""
    return expected.note == sharing.NOTE


def kind_of_theory(cells: Sequence[CellResult], metric: str) -> str:
    """What the theoretical values of a table are."""
    shares = [is_share(grid.theory_of(cell, metric)) for cell in cells if theory(cell, metric, 1.0)]
    if all(shares):
        return "theory: max-min fair share, a reference and not a prediction"
    closed = "theory: closed form, steady state"
    return f"{closed}; with several flows the max-min fair share, no prediction" if any(shares) else closed


def forms(cells: Sequence[CellResult], metric: str) -> Iterator[str]:
    """A line for each closed form with its protocols, or the reason why a protocol has none.

    A protocol with one form has its whole note, one with several the names of the forms and their cells.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        expected = grid.theory_of(cell, metric)
        if cell.metrics and not is_share(expected):
            values = cell.cell.params.values()
            label = formatting.label(*values) if len(values) == 1 else ""
            found.setdefault(cell.cell.display_name, {}).setdefault(expected.note, []).append(label)
    lines: dict[str, list[str]] = {}
    for protocol, notes in found.items():
        text = _form(*notes) if len(notes) == 1 else _several_forms(notes)
        lines.setdefault(text.removeprefix(f"{protocol}: "), []).append(protocol)
    for text, protocols in lines.items():
        yield f"theory of {', '.join(protocols)}: {text}"


def _form(note: str) -> str:
    """The only form of a protocol, or the reason why it has none.

    >>> _form("upper bound by link and window; no closed form: the queue is codel")
    'none: the queue is codel'
    """
    _, separator, reason = note.partition(NO_FORM)
    return f"{_NO_NAME}: {reason}" if separator else note


def _several_forms(notes: Mapping[str, list[str]]) -> str:
    """The names of a protocol's forms, with the labels of their cells.

    >>> _several_forms({"A: x": ["1%", "2%"], "A: y": ["3%"], "no closed form: z": ["4%"]})
    'A at 1% to 3%, none at 4%'
    """
    named: dict[str, list[str]] = {}
    for note, labels in notes.items():
        named.setdefault(_form(note).partition(":")[0], []).extend(labels)
    if len(named) == 1 or not all(label for labels in named.values() for label in labels):
        return "; ".join(named)
    return ", ".join(f"{name} at {_ends(labels)}" for name, labels in named.items())


def _ends(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"


def classes(study: Study, metric: str) -> str:
    """The size classes of flows; empty if the workload has none or the tables do not show them."""
    bounds = study.workload.get("classes")
    shown_in_parts = AT_HOST in metric or any(AT_HOST in name for name in study.show or ())
    if not isinstance(bounds, list) or not shown_in_parts:
        return ""
    return ", ".join(names.class_bounds(bounds))


def determinism(study: Study, results: Sequence[CellResult]) -> Iterator[str]:
    """Lines about deterministic cells, and how to vary their trials; none if all cells are random."""
    fixed = [result for result in results if result.deterministic]
    if not fixed:
        return
    some = f" in {len(fixed)} of {len(results)} cells (without ±)"
    where = "" if len(fixed) == len(results) else some
    yield f"{formatting.DETERMINISTIC}{where}: nothing is random, so all trials give the same result"
    yield from _variation(study, fixed, all_fixed=not where)


def _variation(study: Study, fixed: Sequence[CellResult], *, all_fixed: bool) -> Iterator[str]:
    """How to vary the trials of deterministic cells; for a single flow only if no cell is random."""
    workload = fixed[0].cell.spec["workload"]
    if any("start_jitter" in cell.cell.spec["workload"] for cell in fixed):
        return
    networks = (part for cell in fixed for part in cell.cell.spec.items() if part[0] in ("path", "topology"))
    traced = next((key for name, network in networks for key in _traced(network, name)), None)
    if traced is not None:
        yield f'to start each trial at a random time of its recorded rates, set {traced} = "random"'
        return
    possible = not check("workload", {**workload, "start_jitter": "100ms"})
    several = study.traffic or any(_several_flows(cell) for cell in fixed)
    if possible and several:
        yield 'flows that start together stay in step: set workload.start_jitter, e.g. "100ms"'
    elif several or not all_fixed:
        return
    elif possible and "duration" in workload:
        yield 'to vary the phase at which the measured time starts, set workload.start_jitter, e.g. "100ms"'
    else:
        yield "one trial is enough"


def _traced(value: Any, key: str) -> Iterator[str]:
    """Yields the keys that set the start of recorded rates in a network, for each link that has no start."""
    if isinstance(value, dict) and {"trace", "cell"} & set(value) and "trace_start" not in value:
        yield f"{key}.trace_start"
    tables = (
        value.items() if isinstance(value, dict) else enumerate(value, 1) if isinstance(value, list) else ()
    )
    for name, inner in tables:
        yield from _traced(inner, f"{key}.{name}")


def _several_flows(result: CellResult) -> bool:
    """Whether several measured flows share the network."""
    workload, sharing = result.cell.spec["workload"], result.samples.get("flows_sharing", ())
    lists = (workload.get(key) for key in ("from", "to"))
    return (
        workload.get("flows", 1) != 1
        or any(isinstance(listed, list) and len(listed) > 1 for listed in lists)
        or any(count > 1 for count in sharing)
        or len(grid.hosts([result], "goodput_bps")) > 1
    )


def failures(cells: Sequence[CellResult]) -> Iterator[str]:
    """The failed trials: a line for each protocol, world and error."""
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        for error in cell.failures:
            groups.setdefault((cell.cell.display_name, cell.cell.world, error), []).append(cell)
    for (protocol, world, error), concerned in groups.items():
        failed = sum(cell.failures[error] for cell in concerned)
        tried = sum(cell.tried for cell in concerned)
        places = [formatting.place(cell.cell.params) for cell in concerned if cell.cell.params]
        at = f" at {places[0]}" if len(places) == 1 else f" in {len(places)} cells" if places else ""
        yield f"{protocol}{at} ({world}): {failed} of {tried} trials failed: {error}"


def gaps(study: Study, results: Sequence[CellResult]) -> Iterator[str]:
    """What a run lacks that ended early: cells without trials, and the precision of cells."""
    planned = len(cells_of(study))
    if missing := planned - len(results):
        yield f"{missing} of {planned} cells have no trial and are not shown: the run ended early"
    if missed := imprecise(study, results):
        widest, ratio = max(missed, key=lambda one: one[1])
        needed = trials_needed(widest.n, ratio) if math.isfinite(ratio) else math.inf
        trials = f"about {formatting.rounded(needed)} trials" if math.isfinite(needed) else "more trials"
        misses = f"{len(missed)} of {planned} cells miss the precision of {study.precision}"
        yield f"{misses}; the widest, {_place(widest)}, needs {trials}"


def cautions(study: Study, results: Sequence[CellResult]) -> Iterator[str]:
    """What a run lacks, unknown values, packets that hosts dropped, and limits other than the network."""
    yield from gaps(study, results)
    yield from unknown(results, grid.shown(study, results))
    yield from host_drops(results)
    yield from limits(results)
    yield from ecn(results)


def limits(cells: Sequence[CellResult]) -> Iterator[str]:
    """One line with the limits other than the network, the number of cells, and the keys to change; or none.

    >>> from longfat.results.run import Cell, CellResult
    >>> spec = {"protocol": {"kind": "tcp"}, "workload": {"kind": "bulk", "duration": "11s"}}
    >>> cell = Cell("sim", "cubic", {"path.delay": "100ms"}, spec)
    >>> for line in limits([CellResult(cell, 1, {}, {}, {"sndbuf_limited_s": [9.0]})]):
    ...     print(line.partition(": ")[2].partition(" (")[0])
    the send buffer in 1 of 1 cells
    """
    found = [
        f"the {one.name} in {one.cells} of {len(cells)} cells (up to {100 * one.share:.0f} % of the time: "
        f"{_place(one.worst)}; key: {' or '.join(one.keys)} of the protocol)"
        for one in limited.limits(cells)
    ]
    if found:
        yield f"limited by a buffer, not by the network: {', '.join(found)}"


def ecn(cells: Sequence[CellResult]) -> Iterator[str]:
    """Protocols without ECN in a queue that marks, and controllers made for marks without any."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in marking.without_ecn(cells):
        groups.setdefault(one.beside, []).append(one.protocol)
    for beside, protocols in groups.items():
        verb = "uses" if len(protocols) == 1 else "use"
        yield (
            f"{', '.join(protocols)} {verb} no ECN: queues dropped packets and marked those of "
            f"{', '.join(beside)} (key: ecn of the protocol)"
        )
    if protocols := list(marking.without_marks(cells)):
        yield (
            f"{', '.join(protocols)}: packets were dropped and none marked, so only losses reduced windows "
            '(queues that mark: "step", "dualpi2", "pi2", or "codel", "pie" or "red" with ecn = true)'
        )


def unknown(cells: Sequence[CellResult], metrics: Sequence[str]) -> Iterator[str]:
    """Why metrics have no value: a line for each metric, with the cell with the most trials without one."""
    for metric in metrics:
        found = [(cell.censored[metric], cell) for cell in cells if metric in cell.censored]
        if found:
            why, worst = max(found, key=lambda one: one[0].trials)
            more = f"; also in {len(found) - 1} more cells" if len(found) > 1 else ""
            phrase = names.metric_phrase(metric)
            yield f"{phrase} of {_place(worst)} ({worst.cell.world}) is {censored.unknown(why)}{more}"


def host_drops(cells: Sequence[CellResult]) -> Iterator[str]:
    """A caution for each world in which the hosts' kernels dropped packets; no link lost these.

    >>> from longfat.results.run import Cell, CellResult
    >>> cell = Cell("netns", "reno", {"path.delay": "5ms"}, {})
    >>> [line] = host_drops([CellResult(cell, 3, {}, {}, {"host_drops": [0.0, 12.0, 3.0]})])
    >>> line.partition(" (no")[0]
    "caution (netns): the hosts' kernels dropped packets in 2 of 3 trials"
    >>> line.partition(": ")[2].partition("; ")[2]
    'most: 12 with reno (path.delay = 5ms)'
    >>> list(host_drops([CellResult(cell, 1, {}, {}, {"host_drops": [0.0]})]))
    []
    """
    for world in grid.worlds(cells):
        seen = [
            (drops, cell)
            for cell in cells
            if cell.cell.world == world and HOST_DROPS in cell.samples
            for drops in cell.samples[HOST_DROPS]
        ]
        hit = [one for one in seen if one[0] > 0]
        if not hit:
            continue
        most, worst = max(hit, key=lambda one: one[0])
        yield (
            f"caution ({world}): the hosts' kernels dropped packets in {len(hit)} of {len(seen)} trials "
            f"(no link lost these); most: {most:,.0f} with {_place(worst)}"
        )


def _place(result: CellResult) -> str:
    """The protocol of a cell, with its swept keys."""
    point = formatting.place(result.cell.params)
    return f"{result.cell.display_name}{f' ({point})' if point else ''}"
