"""What a prediction is, and how the absence of one is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Prediction:
    """What theory says of one metric of one cell, in the metric's unit; None where no closed form applies.

    `exact` says whether the form holds without approximation in steady state; `note` names the form and what
    it leaves out, or why there is none. Where there is none, `bound` is what cannot be exceeded, if at least
    that is known. `forms` are several forms by their name, where more than one speaks of the cell.
    """

    value: float | None
    exact: bool
    note: str
    bound: float | None = None
    forms: Mapping[str, float] = field(default_factory=dict)


class NoClosedFormError(Exception):
    """Why none of the forms applies."""


def nothing(reason: object) -> Prediction:
    """No form, for this reason."""
    return Prediction(None, exact=False, note=f"no closed form: {reason}")
