"""Verdicts on claims: holds, fails, undecided.

The rule, without exceptions:

- Cells are compared trial by trial (`longfat.analysis.statistics`), in every cell that the claim covers.
- A claim *holds* in a cell if the 95 % interval lies wholly on the claimed side, and *fails* if it lies
  wholly on the other side. If the interval contains both sides, the claim is *undecided*.
- A claim holds if it holds in every cell. It fails if it clearly fails in any cell: with many cells, one may
  appear to fail by chance, so "clearly" means the interval at 1 - 5 % / (number of cells) (Bonferroni).
  Otherwise it is undecided.
- A run with a precision looks at its verdicts repeatedly: its intervals have a higher confidence, so that all
  looks together have 95 % (`longfat.analysis.looks`).
- With `cells`, a claim holds if it holds in that number or share of cells, and fails if it clearly fails in
  too many others.
- A value that is unknown, because requests are unanswered or flows incomplete, leaves a claim undecided.
- Fewer than 3 trials in a cell leave it undecided. Failed trials have no values and are only counted.

`longfat.analysis.relations` defines what each relation compares. Each world has its own verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longfat.analysis import relations
from longfat.analysis.expectation import expected
from longfat.analysis.prediction import predict
from longfat.analysis.relations import Family
from longfat.results.run import CONFIDENCE, CellResult, VerdictWord
from longfat.study.claims import AGREES, BESTS, THEORY, TRENDS, Claim, Where
from longfat.study.labels import label
from longfat.study.selection import claim_worlds, pairings, series
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from longfat.analysis.relations import Evidence
    from longfat.results.run import Cell
    from longfat.study import Study
    from longfat.study.selection import Pairing


@dataclass(frozen=True)
class Judgement:
    """A claim in one world: its verdict and the comparison that decided it.

    The claim covers `total` cells, or trends if its relation is one along a swept key: one for each
    combination of the other keys. `agreeing` of them have the verdict of the claim: of a claim that fails,
    these fail. `decisive` is the comparison to report of these (`relations.deciding`).
    `reason` is set instead if there was nothing to compare. `pending` are the cells of each undecided
    comparison, and `needed` estimates how many trials of each would decide the claim.
    """

    claim: Claim
    world: str
    verdict: VerdictWord
    decisive: Evidence | None = None
    agreeing: int = 0
    total: int = 0
    reason: str = ""
    pending: tuple[tuple[Cell, ...], ...] = ()
    needed: float = math.inf


def judge(study: Study, results: Sequence[CellResult]) -> list[Judgement]:
    """Returns a judgement for each claim and world, in the order of the study file."""
    worlds = [world for world in study.worlds if any(r.cell.world == world for r in results)]
    found = []
    for claim in study.claims:
        judged = claim_worlds(claim, worlds)
        if claim.relation == AGREES and claim.against not in worlds:
            judged = []
        found += [_judge(study, claim, world, results) for world in judged]
        if not judged:
            found.append(_undecided(claim, claim.world or "", _not_run(claim, worlds)))
    return found


def _undecided(claim: Claim, world: str, reason: str) -> Judgement:
    return Judgement(claim, world, "undecided", reason=reason)


def _not_run(claim: Claim, worlds: Sequence[str]) -> str:
    """Why the run has no world in which to judge a claim."""
    missing = claim.against if claim.relation == AGREES and claim.against not in worlds else claim.world
    if missing is not None:
        return f"this run has no trials in the world {missing}"
    if worlds:
        return f"this run has no trials in a world other than {claim.against}"
    return "this run has no trials"


def _judge(study: Study, claim: Claim, world: str, results: Sequence[CellResult]) -> Judgement:
    metric = study.column(claim.metric)
    by_cell = {result.cell.identity: result for result in results}

    def result_of(cell: Cell) -> CellResult:
        if cell.protocol == THEORY:
            return _theory(claim, metric, by_cell[replace(cell, protocol=claim.of).identity])
        return by_cell[cell.identity]

    pairs = pairings(claim, world, [result.cell for result in results])
    if missing := _unmeasured(claim, metric, [result_of(pair.of) for pair in pairs]):
        return _undecided(claim, world, missing)
    confidence = max((result_of(cell).confidence for cell in _measured(pairs)), default=CONFIDENCE)
    compared: list[tuple[Evidence, Sequence[Pairing]]]
    if claim.relation in TRENDS:
        groups = [group for group in series(claim, pairs) if len(group.points) > 1]
        family = Family(sum(len(group.points) - 1 for group in groups), confidence)
        compared = [
            (evidence, group.points)
            for group in groups
            if (evidence := relations.trend(claim, metric, group, result_of, family)) is not None
        ]
    elif claim.relation in BESTS:
        family = Family(len(pairs), confidence)
        of_cell: dict[int, list[Pairing]] = {}
        for pair in pairs:
            of_cell.setdefault(id(pair.of), []).append(pair)
        compared = [_best(claim, metric, rivals, result_of, family) for rivals in of_cell.values()]
    else:
        family = Family(len(pairs), confidence)
        compared = [(_compare(claim, metric, pair, result_of, family), [pair]) for pair in pairs]
    if not compared:
        return _undecided(claim, world, "this run has no cells that the claim covers")
    return _conclude(claim, world, compared)


def _compare(
    claim: Claim, metric: str, pair: Pairing, result_of: Callable[[Cell], CellResult], family: Family
) -> Evidence:
    if pair.against is None:
        return relations.level(claim, metric, result_of(pair.of), family)
    compare = relations.agreement if claim.relation == AGREES else relations.comparison
    return compare(claim, metric, result_of(pair.of), result_of(pair.against), family)


def _best(
    claim: Claim,
    metric: str,
    rivals: Sequence[Pairing],
    result_of: Callable[[Cell], CellResult],
    family: Family,
) -> tuple[Evidence, Sequence[Pairing]]:
    """Compares a cell with all its rivals; the evidence is the comparison that decides."""
    pieces = []
    for pair in rivals:
        if pair.against is not None:
            at: Where = (
                {claim.among: label(pair.against.value(claim.among))} if isinstance(claim.among, str) else {}
            )
            single = claim.compared_with(pair.against.protocol, at)
            found = relations.comparison(single, metric, result_of(pair.of), result_of(pair.against), family)
            pieces.append((found, pair))
    verdict = relations.together([piece.verdict for piece, _ in pieces])
    evidence = relations.deciding([piece for piece, _ in pieces], verdict)
    return evidence, [pair for piece, pair in pieces if piece.verdict == verdict]


def _unmeasured(claim: Claim, metric: str, concerned: Sequence[CellResult]) -> str:
    """Why no successful trial has a value of the claim's metric; empty if one has."""
    tried = [result for result in concerned if result.n]
    if not tried or any(metric in result.samples or metric in result.censored for result in tried):
        return ""
    whole, _, host = metric.partition(AT_HOST)
    hosts = [name.partition(AT_HOST)[2] for name in tried[0].samples if name.startswith(whole + AT_HOST)]
    if host and hosts:
        return f'"{claim.metric}" was not measured: no flow has the host "{host}" ({", ".join(hosts)})'
    workload = tried[0].cell.spec["workload"].get("kind")
    return f'"{claim.metric}" was not measured: the workload "{workload}" does not produce it here'


def _theory(claim: Claim, metric: str, measured: CellResult) -> CellResult:
    """The value that theory predicts, as if every trial had measured it; no values without a closed form."""
    value = expected(predict(measured.cell.spec, metric), claim)
    values = [] if value is None else [value] * len(measured.trials)
    return CellResult(
        cell=replace(measured.cell, protocol=THEORY),
        n=len(values),
        failures={},
        metrics={},
        samples={metric: values},
        trials=measured.trials if values else [],
    )


def _measured(pairs: Iterable[Pairing]) -> Iterator[Cell]:
    """Yields the cells of pairs, each once, without theory."""
    cells = (cell for pair in pairs for cell in (pair.of, pair.against) if cell is not None)
    seen: set[int] = set()
    for cell in cells:
        if cell.protocol != THEORY and id(cell) not in seen:
            seen.add(id(cell))
            yield cell


def _verdict(claim: Claim, verdicts: Sequence[VerdictWord]) -> VerdictWord:
    """The verdict on all comparisons, of which the claim may except some."""
    if claim.cells is None:
        return relations.together(verdicts)
    enough = claim.enough(len(verdicts))
    if verdicts.count("holds") >= enough:
        return "holds"
    return "fails" if verdicts.count("fails") > len(verdicts) - enough else "undecided"


def _conclude(claim: Claim, world: str, compared: Sequence[tuple[Evidence, Sequence[Pairing]]]) -> Judgement:
    verdict = _verdict(claim, [piece.verdict for piece, _ in compared])
    agreeing = [piece for piece, _ in compared if piece.verdict == verdict]
    decisive = relations.deciding(agreeing, verdict)
    # A claim that fails in one cell is decided, whatever the others say.
    pending = [(piece, pairs) for piece, pairs in compared if piece.verdict == verdict == "undecided"]
    return Judgement(
        claim,
        world,
        verdict,
        decisive,
        len(agreeing),
        len(compared),
        pending=tuple(tuple(_measured(pairs)) for _, pairs in pending),
        needed=max((piece.needed for piece, _ in pending), default=0.0),
    )
