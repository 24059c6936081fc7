"""Censored metrics: times without an end, which exceed all measured ones.

A request without a response and a failed flow have no time, but are slower than all others. A flow that the
end of the trial cuts off is longer than its age, and the native part weights times by the product-limit
estimator (`censored.rs`). A percentile that falls among unknown times is unknown, and so is a mean that
includes one. Such a value is missing in the record of a trial, and the vocabulary declares which metrics
count these times. The mean over the trials of a cell is unknown if the value of one of them is: the other
trials are the fast ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from longfat.results.run import Censored
from longfat.study.vocabulary import AT_HOST, metrics


def censored(
    missing: Collection[str], positive: Collection[str], samples: Mapping[str, Sequence[float]]
) -> dict[str, Censored]:
    """Returns the censored metrics of a cell.

    `missing` are the metrics without a value in some trial, `positive` those above 0 in one. `samples` are
    read only for metrics that may be censored.

    >>> samples = {"fct_p99_s": [math.nan, 1.0], "requests_unanswered": [339, 0]}
    >>> samples["flows_completed"] = [161, 500]
    >>> censored(["fct_p99_s"], ["requests_unanswered"], samples)["fct_p99_s"]
    Censored(trials=1, of=2, beyond={'requests_unanswered': 339}, measured=661)
    >>> censored(["fct_p99_s"], [], samples)
    {}

    The simulator does not record times on the wire.

    >>> censored(["wire_p50_s"], ["requests_unanswered"], samples)
    {}
    """
    found = {}
    for metric in missing:
        whole, at, part = metric.partition(AT_HOST)
        declared: dict[str, Any] | None = metrics().get(whole, {}).get("censoring")
        if declared is None:
            continue
        counts = [name + at + part for name in declared["beyond"] if name + at + part in positive]
        if not counts:
            continue
        columns = [_numbers(samples, count) for count in counts]
        totals = [math.fsum(row) for row in zip(*columns, strict=True)]
        values = samples.get(metric) or [math.nan] * len(totals)
        recorded = declared["recorded"]
        known = totals if recorded is None else samples.get(recorded + at + part) or [math.nan] * len(totals)
        trials = sum(
            total > 0 and not math.isfinite(value) and math.isfinite(one)
            for value, total, one in zip(values, totals, known, strict=True)
        )
        if trials:
            measured = declared["measured"]
            found[metric] = Censored(
                trials,
                len(totals),
                {name: round(math.fsum(column)) for name, column in zip(counts, columns, strict=True)},
                None if measured is None else round(math.fsum(_numbers(samples, measured + at + part))),
            )
    return found


def _numbers(samples: Mapping[str, Sequence[float]], metric: str) -> list[float]:
    return [0.0 if math.isnan(value) else value for value in samples.get(metric, ())]
