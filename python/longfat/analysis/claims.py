"""Claims held against a run: holds, fails, undecided.

The rule, which no claim is bent around:

- A comparison is made trial by trial (see `longfat.analysis.statistics`), in every cell concerned.
- It *holds* in a cell where the 95 % interval lies wholly on the claimed side, and *fails* where the
  interval lies wholly on the other side. Where the interval has both sides in it, it is *undecided*.
- The claim holds only if it holds in every cell. It fails if it fails clearly in any cell; since one
  of many cells may look like failing by chance, "clearly" means the interval at 1 - 5 % / (number of cells)
  (Bonferroni). Otherwise it is undecided.
- Fewer than 3 trials in a cell leave it undecided. Trials that failed have no value and take no part; the
  detail counts them.

What each relation compares is said in `longfat.analysis.relations`. Each world has a verdict of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longfat.analysis.expectation import expected
from longfat.analysis.prediction import predict
from longfat.results import CellResult, Verdict, VerdictWord
from longfat.study.claims import AGREES, LEVELS, THEORY, TRENDS, Claim
from longfat.study.selection import claim_worlds, pairings, series
from longfat.study.vocabulary import AT_HOST, canonical, resolve_metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.relations import Evidence
    from longfat.results import Cell
    from longfat.study import Study


def evaluate_claims(study: Study, results: Sequence[CellResult]) -> list[Verdict]:
    """One verdict for each claim and world, in the order of the study file."""
    worlds = [world for world in study.worlds if any(r.cell.world == world for r in results)]
    verdicts = []
    for claim in study.claims:
        judged = claim_worlds(claim, worlds)
        if claim.relation == AGREES and claim.against not in worlds:
            judged = []
        verdicts += [_judge(claim, world, results) for world in judged]
        if not judged:
            verdicts.append(_verdict(claim, claim.world or "", "undecided", _not_run(claim, worlds)))
    return verdicts


def _not_run(claim: Claim, worlds: Sequence[str]) -> str:
    """Why a claim has no world to be judged in."""
    missing = claim.against if claim.relation == AGREES and claim.against not in worlds else claim.world
    if missing is not None:
        return f"this run has no trials in the world {missing}"
    if worlds:
        return f"this run has no trials in another world than {claim.against}"
    return "this run has no trials"


def _verdict(claim: Claim, world: str, word: VerdictWord, detail: str) -> Verdict:
    return Verdict(id=claim.id, text=claim.text, verdict=word, detail=detail, world=world)


def _judge(claim: Claim, world: str, results: Sequence[CellResult]) -> Verdict:
    from longfat.analysis import relations

    metric = resolve_metric(claim.metric)
    by_cell = {_identity(result.cell): result for result in results}

    def result_of(cell: Cell) -> CellResult:
        if cell.protocol == THEORY:
            return _theory(claim, metric, by_cell[_identity(replace(cell, protocol=claim.of))])
        return by_cell[_identity(cell)]

    pairs = pairings(claim, world, [result.cell for result in results])
    if missing := _unmeasured(claim, metric, [result_of(pair.of) for pair in pairs]):
        return _verdict(claim, world, "undecided", missing)
    if claim.relation in TRENDS:
        groups = [group for group in series(claim, pairs) if len(group.points) > 1]
        count = sum(len(group.points) - 1 for group in groups)
        evidence = [e for group in groups for e in relations.trend(claim, metric, group, result_of, count)]
    elif claim.relation in LEVELS:
        evidence = [relations.level(claim, metric, result_of(pair.of), len(pairs)) for pair in pairs]
    else:
        compare = relations.agreement if claim.relation == AGREES else relations.comparison
        evidence = [
            compare(claim, metric, result_of(pair.of), result_of(pair.against), len(pairs))
            for pair in pairs
            if pair.against is not None
        ]
    if not evidence:
        return _verdict(claim, world, "undecided", "this run has no cells that the claim is about")
    return _conclude(claim, world, evidence)


def _unmeasured(claim: Claim, metric: str, concerned: Sequence[CellResult]) -> str:
    """Why no trial that succeeded has a value of the claim's metric; empty where one has."""
    tried = [result for result in concerned if result.n]
    if not tried or any(metric in result.samples for result in tried):
        return ""
    whole, _, host = metric.partition(AT_HOST)
    hosts = [name.partition(AT_HOST)[2] for name in tried[0].samples if name.startswith(whole + AT_HOST)]
    if host and hosts:
        return f'"{claim.metric}" was not measured: there is no flow of a host "{host}" ({", ".join(hosts)})'
    workload = tried[0].cell.spec["workload"].get("kind")
    return f'"{claim.metric}" was not measured: a workload of kind "{workload}" does not give it here'


def _theory(claim: Claim, metric: str, measured: CellResult) -> CellResult:
    """What theory expects, as if each trial had measured it; no values where it has no form."""
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


def _identity(cell: Cell) -> tuple[str, str, str]:
    return cell.world, cell.protocol, canonical(cell.params)


def _conclude(claim: Claim, world: str, evidence: Sequence[Evidence]) -> Verdict:
    """All pieces together, told by the one that decides: the worst."""
    found = {piece.verdict for piece in evidence}
    word: VerdictWord = "fails" if "fails" in found else "undecided" if "undecided" in found else "holds"
    concerned = [piece for piece in evidence if piece.verdict == word]
    worst = min(concerned, key=lambda piece: piece.strength)
    scope = ""
    if len(evidence) > 1:
        kind = worst.counted
        scope = {
            "holds": f"in {'both' if len(evidence) == 2 else f'all {len(evidence)}'} {kind}; closest ",
            "fails": f"in {len(concerned)} of {len(evidence)} {kind}; worst ",
            "undecided": f"in {len(concerned)} of {len(evidence)} {kind}; e.g. ",
        }[word]
    return _verdict(claim, world, word, f"{scope}{worst.text}")
