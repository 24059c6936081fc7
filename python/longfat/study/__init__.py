"""Study files: their skeleton, quantities, sweeps and claims, and the messages about their mistakes.

Names are imported when they are first used: many commands need a quantity or a setting, few a whole study.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.study.catalogue import builtin
    from longfat.study.claims import Claim
    from longfat.study.conditions import Condition
    from longfat.study.loading import load_study
    from longfat.study.overrides import Overrides, read_setting
    from longfat.study.problems import StudyError
    from longfat.study.specification import ProtocolEntry, Reported, Study
    from longfat.study.sweep import cells

__all__ = [
    "Claim",
    "Condition",
    "Overrides",
    "ProtocolEntry",
    "Reported",
    "Study",
    "StudyError",
    "builtin",
    "cells",
    "load_study",
    "read_setting",
]

_MODULES = {
    "Claim": "claims",
    "Condition": "conditions",
    "Overrides": "overrides",
    "ProtocolEntry": "specification",
    "Reported": "specification",
    "Study": "specification",
    "StudyError": "problems",
    "builtin": "catalogue",
    "cells": "sweep",
    "load_study": "loading",
    "read_setting": "overrides",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"longfat.study.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
