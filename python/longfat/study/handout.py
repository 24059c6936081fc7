"""Studies without their answers, for students."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from longfat.study.reading import write_toml
from longfat.study.vocabulary import short_metric

if TYPE_CHECKING:
    from longfat.study.specification import Study

SUBMISSION = "submission"
"""The protocol of a lab study whose controller a submission replaces."""
_ANSWERS = ("claims", "reported", "notes", "description")
"""Keys that state or explain results."""


def handout_of(study: Study) -> str:
    """Returns a study as TOML without claims, reported results and notes.

    Each claim is a comment that asks for a prediction. A further comment says what to hand in if the study
    has a protocol that submissions replace.
    """
    tables = tomllib.loads(study.to_toml())
    kept = {key: value for key, value in tables.items() if key not in _ANSWERS}
    if "show" in kept:
        kept["show"] = [short_metric(metric) for metric in kept["show"]]
    texts = [" ".join(claim.text.split()) for claim in study.claims]
    lines = [f"# {number}. {text}" for number, text in enumerate(texts, 1)]
    asked = ["# Predict before you run it: does each statement hold?", *lines, ""] if lines else []
    if any(entry["name"] == SUBMISSION for entry in tables["protocols"]):
        how = "this study with another one, or a Python file with one controller"
        asked += [f'# Hand in a protocol "{SUBMISSION}": {how}.', ""]
    return "\n".join([*asked, write_toml(kept)])
