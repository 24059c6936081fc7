"""Confidence intervals of means, differences and ratios.

The rules:

- Every interval has 95 % confidence. In a run with a precision, all looks at it together have it
  (`longfat.analysis.looks`).
- The interval of a mean is Student's t below 30 trials. From 30 trials, it is the bias-corrected and
  accelerated bootstrap (BCa; Efron 1987) with 9999 resamples and a fixed seed, which follows skewed
  samples; with fewer trials, bootstrap intervals are too short. From 100 trials, the bootstrap distribution
  is expanded instead of drawn (`longfat.analysis.bootstrap`).
- The vocabulary declares the range of each metric: shares are within 0 and 1, Jain's index of n flows within
  1/n and 1, most others are not negative. Intervals of means, differences and ratios are cut at it
  (`longfat.analysis.metric_range`).
- A mean is unknown if a trial's value is unknown, because times without an end exceed all measured ones
  (`longfat.analysis.censoring`).
- One trial has no interval: its bounds are NaN. Trials that all agree have an interval of width zero.
- Samples of runs with different seeds are independent: Welch's interval, and Fieller's without covariance.
- Two cells are compared trial by trial, since trial k of both has the same losses. The interval of the
  difference is the t interval of the paired differences, that of the ratio is Fieller's (1954); so the
  interval of a ratio excludes 1 if that of the difference excludes 0. A ratio's lower bound is at least zero,
  and its upper bound is infinite unless the denominator is clearly above zero.

An interval is computed when one of its bounds is first read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from longfat.analysis import looks
from longfat.analysis.censoring import censored
from longfat.analysis.metric_range import Range, range_of
from longfat.results.run import CONFIDENCE as CONFIDENCE  # noqa: PLC0414 - re-exported
from longfat.results.run import Cell, CellResult, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray


BOOTSTRAP_FROM = 30
"""Number of trials from which the interval of a mean is the BCa bootstrap."""

EXPANSION_FROM = 100
"""Number of trials from which the bootstrap distribution is expanded instead of drawn."""

RESAMPLES = 9999
"""Number of bootstrap resamples."""

T = TypeVar("T")


class Measured(Protocol):
    """The records of trials, by cells and metrics."""

    def trials(self, cell: int) -> Sequence[int]:
        """Returns the numbers of a cell's successful trials."""

    def failures(self, cell: int) -> dict[str, int]:
        """Returns the number of a cell's failed trials by error."""

    def varying(self, cell: int) -> Mapping[str, bool]:
        """Returns the metrics with a value in a cell, and whether its trials have different ones."""

    def missing(self, cell: int) -> Collection[str]:
        """Returns the metrics without a value in some successful trial of a cell."""

    def inputs(self, metric: str) -> Sequence[str]:
        """Returns the metrics from which a derived metric is computed; none for others."""

    def positive(self, cell: int) -> Collection[str]:
        """Returns the metrics above 0 in some successful trial of a cell."""

    def values(self, cell: int, metric: str) -> NDArray[np.float64]:
        """Returns the values of a cell's successful trials; NaN for a trial without one."""


def summarise(
    records: Measured, cells: Sequence[Cell], first_look: Callable[[str], int | None] = lambda _: None
) -> list[CellResult]:
    """Summarises the records of each cell: successes, failures by error, and each metric's samples.

    Cells without records are left out. Samples are read when they are used, and intervals computed on first
    use. `first_look` returns the trials at the first look in a world of an adaptive run; None for a fixed
    number of trials.
    """
    results = []
    for index, cell in enumerate(cells):
        trials, failures = records.trials(index), records.failures(index)
        tried = len(trials) + sum(failures.values())
        if not tried:
            continue
        # A swept key can have the name of a metric.
        varying = {name: some for name, some in records.varying(index).items() if name not in cell.params}
        values = functools.partial(records.values, index)
        samples = _Samples(list(varying), values)
        missing = records.missing(index)
        unknown = censored(missing, records.positive(index), samples)
        causes = {
            metric: [unknown[one] for one in records.inputs(metric) if one in unknown] for metric in missing
        }
        unknown |= {metric: found[0] for metric, found in causes.items() if found}
        first = first_look(cell.world)
        level = CONFIDENCE if first is None else looks.confidence(tried, first)
        results.append(
            CellResult(
                cell=cell,
                n=len(trials),
                failures=failures,
                metrics=_OnUse(
                    (name for name in varying if name not in unknown),
                    functools.partial(_PendingInterval, samples, level),
                ),
                samples=samples,
                trials=trials,
                deterministic=len(trials) > 1 and not any(varying.values()),
                confidence=level,
                censored=unknown,
            )
        )
    return results


class _Samples(Mapping[str, list[float]]):
    """The samples of a cell, read whenever they are used: all of them may not fit into memory."""

    def __init__(self, names: Sequence[str], values: Callable[[str], NDArray[np.float64]]) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, name: str) -> list[float]:
        if name not in self._names:
            raise KeyError(name)
        found: list[float] = self._values(name).tolist()
        return found

    def array(self, name: str) -> NDArray[np.float64]:
        """The samples of a metric as an array."""
        return self._values(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))


class _OnUse(MutableMapping[str, T], Generic[T]):
    """A mapping that computes each value on first use."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._make = make
        self._found: dict[str, T | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> T:
        value = self._found[name]
        if value is None:
            value = self._found[name] = self._make(name)
        return value

    def __setitem__(self, name: str, value: T) -> None:
        self._found[name] = value

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(dict(self))


class _PendingInterval(Interval):
    """An interval that is computed on first use: the mean separately, or all of it for a bound."""

    _samples: _Samples
    _confidence: float
    _metric: str

    def __init__(self, samples: _Samples, confidence: float, metric: str) -> None:
        object.__setattr__(self, "_samples", samples)
        object.__setattr__(self, "_confidence", confidence)
        object.__setattr__(self, "_metric", metric)

    def __getattr__(self, name: str) -> float:
        # Python calls this for attributes that are not set yet.
        if name == "value":
            found = {"value": _mean(_finite(self._samples.array(self._metric)))}
        elif name in ("low", "high"):
            values, within = self._samples.array(self._metric), range_of(self._metric, self._samples)
            computed = interval(values, self._confidence, within)
            found = {"low": computed.low, "high": computed.high}
        else:
            raise AttributeError(name)
        for key, value in found.items():
            object.__setattr__(self, key, value)
        return found[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and (self.value, self.low, self.high) == (
            other.value,
            other.low,
            other.high,
        )

    def __hash__(self) -> int:
        return hash((self.value, self.low, self.high))

    def __repr__(self) -> str:
        return f"Interval(value={self.value!r}, low={self.low!r}, high={self.high!r})"


def interval(
    samples: Sequence[float] | NDArray[np.float64],
    confidence: float = CONFIDENCE,
    within: Range | None = None,
) -> Interval:
    """Returns the mean of `samples` and its confidence interval by the rules above. Ignores NaN.

    `within` is the range of possible values; default: not negative, unless a sample is.

    >>> interval([4.0])
    Interval(value=4.0, low=nan, high=nan)
    >>> i = interval([9.0, 10.0, 11.0])
    >>> round(i.low, 3), round(i.high, 3)
    (7.516, 12.484)
    """
    values = _finite(samples)
    result = _bootstrap(values, confidence) if values.size >= BOOTSTRAP_FROM else _student(values, confidence)
    if within is None:
        within = Range(0.0) if values.size and values.min() >= 0 else Range()
    return within.cut(result)


def _finite(samples: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = np.asarray(samples, dtype=float)
    return values[np.isfinite(values)]


def _mean(values: NDArray[np.float64]) -> float:
    """The mean; for equal values, the value itself without rounding errors."""
    if values.size == 0:
        return math.nan
    return float(values[0] if values.min() == values.max() else values.mean())


def method(n: int) -> str:
    """The method for the interval of a mean of `n` trials, for footnotes.

    >>> method(1), method(20), method(30), method(2000)
    ('no interval: one trial', "Student's t", 'BCa bootstrap, 9999 resamples', 'BCa bootstrap, expanded')
    """
    if n < 2:
        return "no interval: one trial"
    if n < BOOTSTRAP_FROM:
        return "Student's t"
    return "BCa bootstrap, expanded" if n >= EXPANSION_FROM else f"BCa bootstrap, {RESAMPLES} resamples"


def _student(values: NDArray[np.float64], confidence: float) -> Interval:
    """The t interval, which may be negative; NaN bounds below two values."""
    mean = _mean(values)
    if values.size < 2:
        return Interval(mean, math.nan, math.nan)
    if values.min() == values.max():
        return Interval(mean, mean, mean)
    half = quantile_t(values.size, confidence) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return Interval(mean, mean - half, mean + half)


def trials_needed(n: int, ratio: float, confidence: float = CONFIDENCE) -> float:
    """Estimates the trials at which an interval of Student's t is `ratio` times narrower than with `n`.

    The spread stays the same; the quantile falls with the number of trials.

    >>> trials_needed(3, 1.0), trials_needed(3, 2.0), trials_needed(1000, 2.0)
    (3, 5, 3993)
    """
    if ratio <= 1:
        return n
    width = quantile_t(n, confidence) / math.sqrt(n) / ratio
    low, high = n, max(n, math.ceil(n * ratio**2))
    while low < high:
        middle = (low + high) // 2
        if quantile_t(middle, confidence) / math.sqrt(middle) <= width:
            high = middle
        else:
            low = middle + 1
    return high


def quantile_t(n: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t with `n` - 1 degrees of freedom.

    >>> round(quantile_t(20), 4)
    2.093
    """
    # A slow import that loading a run does not need.
    from scipy import special

    return float(special.stdtrit(n - 1, (1 + confidence) / 2))


def _bootstrap(values: NDArray[np.float64], confidence: float) -> Interval:
    from longfat.analysis import bootstrap

    if values.min() == values.max():
        return _student(values, confidence)
    of = bootstrap.expanded if values.size >= EXPANSION_FROM else bootstrap.resampled
    return Interval(float(values.mean()), *of(values, confidence))


def paired(a: CellResult, b: CellResult, metric: str) -> tuple[list[float], list[float]]:
    """Returns the values of `metric` in the trials that succeeded in both cells, in the same order."""
    of_a, of_b = _by_trial(a, metric), _by_trial(b, metric)
    both = [trial for trial in of_a if trial in of_b]
    return [of_a[trial] for trial in both], [of_b[trial] for trial in both]


def _by_trial(of: CellResult, metric: str) -> dict[int, float]:
    found = zip(of.trials, of.samples.get(metric, []), strict=False)
    return {trial: value for trial, value in found if math.isfinite(value)}


def mean_difference(
    a: Sequence[float],
    b: Sequence[float],
    weight: float = 1.0,
    confidence: float = CONFIDENCE,
    within: Range = Range(),  # noqa: B008 - a constant
) -> Interval:
    """Returns the mean of a - `weight` * b over pairs, with its t interval; both may be negative.

    `within` is the range of possible differences.

    >>> d = mean_difference([3.0, 5.0, 4.0], [2.0, 3.0, 3.0])
    >>> round(d.mean, 3), round(d.low, 3)
    (1.333, -0.101)
    """
    return within.cut(_student(np.asarray(a, dtype=float) - weight * np.asarray(b, dtype=float), confidence))


def ratio(
    a: Sequence[float],
    b: Sequence[float],
    confidence: float = CONFIDENCE,
    within: Range = Range(0.0),  # noqa: B008 - a constant
) -> Interval:
    """Returns mean(a) / mean(b) over pairs, with Fieller's interval, limited to `within`.

    The interval contains every r >= 0 for which the t interval of a - r b contains 0. Its upper bound is
    infinite unless mean(b) clearly differs from zero. The bounds are NaN for a single pair; everything is NaN
    if mean(b) is zero. `a` and `b` must not be negative.
    """
    return within.cut(_fieller(np.asarray(a, dtype=float), np.asarray(b, dtype=float), confidence))


def unpaired(a: Sequence[float], b: Sequence[float], confidence: float) -> tuple[Interval, Interval]:
    """Returns mean(a) - mean(b) and mean(a) / mean(b) of independent samples of two values or more.

    The interval of the difference is Welch's (1947), that of the ratio Fieller's with the same degrees of
    freedom. `a` and `b` must not be negative for the ratio.

    >>> [(round(one.low, 2), round(one.high, 2)) for one in unpaired([4.0, 6.0, 8.0], [1.0, 2.0, 3.0], 0.95)]
    [(-0.16, 8.16), (0.94, 42.97)]
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    of_x, of_y = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    difference = float(x.mean() - y.mean())
    half, squared = 0.0, 0.0
    if of_x + of_y > 0:
        freedom = (of_x + of_y) ** 2 / (of_x**2 / (x.size - 1) + of_y**2 / (y.size - 1))
        squared = quantile_t(freedom + 1, confidence) ** 2
        half = math.sqrt(squared * (of_x + of_y))
    means = float(x.mean()), float(y.mean())
    quotient = _fieller_of(means, (squared * of_x, squared * of_y), 0.0)
    return Interval(difference, difference - half, difference + half), Range(0.0).cut(quotient)


def _fieller(x: NDArray[np.float64], y: NDArray[np.float64], confidence: float) -> Interval:
    if x.size == 0 or y.mean() == 0:
        return Interval(math.nan, math.nan, math.nan)
    means = float(x.mean()), float(y.mean())
    if x.size == 1:
        return Interval(means[0] / means[1], math.nan, math.nan)
    scaled = np.cov(x, y, ddof=1) * (quantile_t(x.size, confidence) ** 2 / x.size)
    return _fieller_of(means, (float(scaled[0, 0]), float(scaled[1, 1])), float(scaled[0, 1]))


def _fieller_of(means: tuple[float, float], variances: tuple[float, float], covariance: float) -> Interval:
    """Returns Fieller's interval from the (co)variances of the means times the squared quantile."""
    (x, y), (of_x, of_y) = means, variances
    if y == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = x / y
    # var(a - r b) >= (mean(a) - r mean(b))^2 is square r^2 - 2 middle r + constant <= 0.
    square = y**2 - of_y
    middle = x * y - covariance
    constant = x**2 - of_x
    discriminant = middle**2 - square * constant
    if square > 0:
        root = math.sqrt(max(discriminant, 0.0))
        return Interval(mean, max((middle - root) / square, 0.0), (middle + root) / square)
    # The interval excludes the ratios between the roots, if there are any, and is unbounded above.
    if square == 0 or discriminant <= 0:
        return Interval(mean, 0.0, math.inf)
    root = math.sqrt(discriminant)
    below, above = (middle + root) / square, (middle - root) / square
    return Interval(mean, max(above, 0.0) if below < 0 <= mean - above else 0.0, math.inf)
