"""Closed forms from the literature, each with its source: for ARQ protocols, TCP and latency.

The functions take and return numbers; `longfat.analysis.prediction` selects the form for a trial. The native
module computes max-min shares.
"""

from longfat.analysis.theory import arq, bbr, latency, slow_start, tcp, transactions

__all__ = ["arq", "bbr", "latency", "slow_start", "tcp", "transactions"]
