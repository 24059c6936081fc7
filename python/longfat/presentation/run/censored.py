"""Why values are unknown, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation import names

if TYPE_CHECKING:
    from longfat.results.run import Censored


def unknown(why: Censored) -> str:
    """The trials whose value is unknown, and the times without an end.

    >>> from longfat.results.run import Censored
    >>> unknown(Censored(5, 20, {"requests_unanswered": 339}, 161))
    'unknown in 5 of 20 trials: 339 of 500 requests unanswered'
    >>> unknown(Censored(1, 1, {"flows_unfinished": 2, "flows_failed": 1}, 97))
    'unknown in 1 of 1 trials: of 100, 2 flows unfinished, 1 flows failed'
    """
    trials = f"unknown in {why.trials} of {why.of} trials"
    counts = [(count, names.metric_phrase(metric)) for metric, count in why.beyond.items()]
    total = None if why.measured is None else why.measured + sum(count for count, _ in counts)
    if total is not None and len(counts) == 1:
        [(count, what)] = counts
        return f"{trials}: {count:,} of {total:,} {what}"
    listed = ", ".join(f"{count:,} {what}" for count, what in counts)
    return f"{trials}: {listed}" if total is None else f"{trials}: of {total:,}, {listed}"
