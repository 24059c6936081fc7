"""Closed forms of the field, each with its source: of ARQ protocols, of TCP, and of latency.

They are numbers in, numbers out; `longfat.analysis.prediction` says which of them speaks of a trial. Max-min
shares come from the native part, which measures distances from them too.
"""

from longfat.analysis.theory import arq, latency, slow_start, tcp, transactions

__all__ = ["arq", "latency", "slow_start", "tcp", "transactions"]
