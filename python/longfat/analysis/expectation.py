"""Theoretical predictions for claims, and checks for claims without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longfat.analysis.prediction import Prediction, predict
from longfat.analysis.prediction.model import NO_FORM
from longfat.study import selection, sweep
from longfat.study.labels import label
from longfat.study.problems import Problem
from longfat.study.vocabulary import allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longfat.study import Study
    from longfat.study.claims import Claim


def theory_problems(study: Study) -> list[Problem]:
    """Returns claims about theory in cells without a closed form, or without the form that they name.

    The study's claims must have passed `longfat.study.selection.check`.
    """
    cells = sweep.cells(study)
    found = []
    for claim in study.claims:
        if claim.against_theory:
            world = selection.claim_worlds(claim, study.worlds)[0]
            problem = _check_theory(
                claim, study.column(claim.metric), selection.pairings(claim, world, cells)
            )
            found += [problem] if problem is not None else []
    return found


def expected(prediction: Prediction, claim: Claim) -> float | None:
    """The value of the closed form that a claim names; None without one."""
    return prediction.forms.get(claim.form) if claim.form else prediction.value


def _check_theory(claim: Claim, metric: str, found: Iterable[selection.Pairing]) -> Problem | None:
    where = f"claims[{claim.id}]"
    found = list(found)
    for pairing in found:
        prediction = predict(pairing.of.spec, metric)
        if expected(prediction, claim) is not None:
            continue
        if claim.form and prediction.forms:
            message = f'"{claim.form}" is not a closed form here; {allowed(claim.form, prediction.forms)}'
            return Problem(f"{where}.against", message)
        point = ", ".join(f"{key} = {value}" for key, value in pairing.of.params.items())
        key = "where" if claim.where else "against"
        return Problem(
            f"{where}.{key}", f"{point or claim.of}: {_reason(prediction)}{_remedy(claim, metric, found)}"
        )
    return None


def _reason(prediction: Prediction) -> str:
    """Why a prediction has no value, without its upper bound."""
    _, separator, reason = prediction.note.partition(NO_FORM)
    return f"{separator}{reason}" if separator else prediction.note


def _remedy(claim: Claim, metric: str, found: Iterable[selection.Pairing]) -> str:
    """Returns how to select the cells with a closed form, if there are any."""
    for pairing in found:
        if expected(predict(pairing.of.spec, metric), claim) is not None:
            return "; select cells with one, e.g. where = " + _conditions(pairing.of.params)
    return "; no cell of this claim has one"


def _conditions(params: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f'"{key}" = "{label(value)}"' for key, value in params.items()) + " }"
