"""Intervals: how sure a mean, a difference or a ratio is.

The rules, which the table's footnote and the report repeat:

- Every interval has 95 % confidence.
- Below 30 trials the interval of a mean is Student's t; from 30 trials on it is the bias-corrected and
  accelerated bootstrap (BCa; Efron 1987) with 9999 resamples and a fixed seed, which follows skewed
  samples. With few trials the bootstrap has too little to resample and its intervals are too short.
- No metric can be negative: a bound below zero is cut off at zero.
- One trial has no interval: its bounds are NaN. Trials that all agree have an interval without width.
- Two cells are compared trial by trial, since trial k of both met the same losses: the difference is the
  t interval of the differences, the ratio is Fieller's (1954), so that a ratio's interval excludes 1
  exactly where the difference's excludes 0.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from longfat.results import Cell, CellResult, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from longfat.study import Study

CONFIDENCE = 0.95
"""The confidence of every interval that is shown."""

BOOTSTRAP_FROM = 30
"""Trials from which on the interval of a mean is the BCa bootstrap."""

RESAMPLES = 9999
"""Resamples of the bootstrap."""

_SEED = 0x1F47
_NOT_METRICS = {"cell", "world", "protocol", "trial", "seed", "error", "key"}


def summarise(study: Study, records: pl.DataFrame, cells: Sequence[Cell]) -> list[CellResult]:
    """Sums up the records of each cell: successes, failures by their error, and an interval for each metric.

    `records` has one row a trial; its column `cell` is an index into `cells`. A cell without any record
    is left out.
    """
    del study  # the rules are the same for every study
    results = []
    for (index,), rows in sorted(records.group_by("cell"), key=lambda group: _index(group[0])):
        ordered = rows.sort("trial")
        good = ordered.filter(ordered["error"].is_null())
        failures = Counter(str(error) for error in ordered["error"].drop_nulls())
        samples = {
            name: [math.nan if value is None else float(value) for value in good[name]]
            for name in _metric_columns(records, cells[_index((index,))])
        }
        samples = {name: values for name, values in samples.items() if any(map(math.isfinite, values))}
        results.append(
            CellResult(
                cell=cells[_index((index,))],
                n=good.height,
                failures=dict(sorted(failures.items())),
                metrics={name: interval(values) for name, values in samples.items()},
                samples=samples,
                trials=[int(trial) for trial in good["trial"]],
            )
        )
    return results


def _index(key: tuple[Any, ...]) -> int:
    return int(key[0])


def _metric_columns(records: pl.DataFrame, cell: Cell) -> list[str]:
    return [
        name
        for name, dtype in records.schema.items()
        if name not in _NOT_METRICS and name not in cell.params and dtype.is_numeric()
    ]


def interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean of `samples` and its confidence interval, by the rules above. NaN among them is left out.

    >>> interval([4.0])
    Interval(mean=4.0, low=nan, high=nan)
    >>> i = interval([9.0, 10.0, 11.0])
    >>> round(i.low, 3), round(i.high, 3)
    (7.516, 12.484)
    """
    values = np.asarray([v for v in samples if math.isfinite(v)], dtype=float)
    result = _bootstrap(values, confidence) if values.size >= BOOTSTRAP_FROM else _student(values, confidence)
    if values.size and values.min() >= 0 and result.low < 0:
        return Interval(result.mean, 0.0, result.high)
    return result


def method(n: int) -> str:
    """How the interval of a mean of `n` trials is found, for footnotes.

    >>> method(1), method(20), method(30)
    ('no interval: one trial', "Student's t", 'BCa bootstrap, 9999 resamples')
    """
    if n < 2:
        return "no interval: one trial"
    return "Student's t" if n < BOOTSTRAP_FROM else f"BCa bootstrap, {RESAMPLES} resamples"


def _student(values: NDArray[np.float64], confidence: float) -> Interval:
    """The t interval, open to negative values; NaN bounds below two values."""
    if values.size == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(values.mean())
    if values.size == 1:
        return Interval(mean, math.nan, math.nan)
    if values.min() == values.max():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    half = quantile_t(values.size, confidence) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return Interval(mean, mean - half, mean + half)


def quantile_t(n: int, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t with `n` - 1 degrees of freedom.

    >>> round(quantile_t(20), 4)
    2.093
    """
    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def _bootstrap(values: NDArray[np.float64], confidence: float) -> Interval:
    # The t interval, which most runs need, does without this import of a second.
    from scipy import stats

    if values.min() == values.max():
        return _student(values, confidence)
    result = stats.bootstrap(
        (values,),
        np.mean,
        vectorized=True,
        method="BCa",
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        rng=np.random.default_rng(_SEED),
    )
    low, high = (float(bound) for bound in result.confidence_interval)
    return Interval(float(values.mean()), low, high)


def paired(a: CellResult, b: CellResult, metric: str) -> tuple[list[float], list[float]]:
    """The values of `metric` in the trials that succeeded in both cells, in the same order."""
    of_b = dict(zip(b.trials, b.samples.get(metric, []), strict=False))
    pairs = [
        (value, of_b[trial])
        for trial, value in zip(a.trials, a.samples.get(metric, []), strict=False)
        if trial in of_b and math.isfinite(value) and math.isfinite(of_b[trial])
    ]
    return [x for x, _ in pairs], [y for _, y in pairs]


def mean_difference(
    a: Sequence[float], b: Sequence[float], weight: float = 1.0, confidence: float = CONFIDENCE
) -> Interval:
    """The mean of a - `weight` * b over pairs, with its t interval; it may be negative.

    >>> d = mean_difference([3.0, 5.0, 4.0], [2.0, 3.0, 3.0])
    >>> round(d.mean, 3), round(d.low, 3)
    (1.333, -0.101)
    """
    return _student(np.asarray(a, dtype=float) - weight * np.asarray(b, dtype=float), confidence)


def ratio(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The ratio of the means of pairs, mean(a) / mean(b), with Fieller's interval.

    The interval holds every r for which the t interval of a - r b holds 0. NaN bounds where one pair alone
    is there, or where mean(b) is not clearly different from zero; a NaN mean where mean(b) is zero.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if x.size == 0 or y.mean() == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(x.mean() / y.mean())
    if x.size == 1:
        return Interval(mean, math.nan, math.nan)
    covariance = np.cov(x, y, ddof=1)
    scale = quantile_t(x.size, confidence) ** 2 / x.size
    # scale * var(a - r b) = (mean(a) - r mean(b))^2, a quadratic in r.
    square = float(y.mean() ** 2 - scale * covariance[1, 1])
    middle = float(x.mean() * y.mean() - scale * covariance[0, 1])
    constant = float(x.mean() ** 2 - scale * covariance[0, 0])
    if square <= 0:
        return Interval(mean, math.nan, math.nan)
    root = math.sqrt(max(middle**2 - square * constant, 0.0))
    return Interval(mean, (middle - root) / square, (middle + root) / square)
