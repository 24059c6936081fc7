"""Predictions, and the reasons for the absence of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_FORM = "no closed form: "
"""What precedes the reason in the note of a prediction without a value."""


@dataclass(frozen=True)
class Prediction:
    """The theoretical value of a metric in a cell, in the metric's unit; None without a closed form.

    `exact` is whether the form is exact in steady state. `note` names the form and its assumptions, or the
    reason why there is none; `bound` is then an upper bound, if one is known. `forms` are the values of all
    applicable forms by name, if there are several.
    """

    value: float | None
    exact: bool
    note: str
    bound: float | None = None
    forms: Mapping[str, float] = field(default_factory=dict)


class NoClosedFormError(Exception):
    """No closed form applies; the message is the reason."""


def nothing(reason: object) -> Prediction:
    """A prediction without a value, for this reason."""
    return Prediction(None, exact=False, note=f"{NO_FORM}{reason}")
