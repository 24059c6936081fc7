"""Study files: their skeleton, quantities, sweeps and claims, and the messages about their mistakes."""

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
