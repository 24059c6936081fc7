"""Closed forms of the field, each with its source: ARQ, TCP, and how flows share a network.

They are numbers in, numbers out; `longfat.analysis.prediction` says which of them speaks of a trial.
"""

from longfat.analysis.theory import arq, sharing, tcp

__all__ = ["arq", "sharing", "tcp"]
