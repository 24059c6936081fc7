"""Studies without their answers, for students."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from longfat.study.reading import write_toml

if TYPE_CHECKING:
    from longfat.study.specification import Study

_ANSWERS = ("claims", "reported", "notes", "description")
"""Keys that state or explain results."""


def handout_of(study: Study) -> str:
    """Returns a study as TOML without claims, reported results and notes.

    Each claim is a comment that asks for a prediction.
    """
    tables = tomllib.loads(study.to_toml())
    kept = {key: value for key, value in tables.items() if key not in _ANSWERS}
    texts = [" ".join(claim.text.split()) for claim in study.claims]
    lines = [f"# {number}. {text}" for number, text in enumerate(texts, 1)]
    asked = ["# Predict before you run it: does each statement hold?", *lines, ""] if lines else []
    return "\n".join([*asked, write_toml(kept)])
