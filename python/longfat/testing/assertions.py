"""Assertions about repeated measurements and simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from longfat.extensions.base import Extension
    from longfat.presentation.run.displayed import Run
    from longfat.study.tables import Path, Protocol, Topology

OURS = "ours"
"""Name of the tested protocol in the study of a claim."""


def assert_at_most(samples: Sequence[float], limit: float, what: str = "the mean") -> None:
    """Asserts that the mean of repeated measurements is at most `limit`, with 95 % confidence.

    Args:
        samples: One value for each repetition, such as the 99th percentile of the delay.
        limit: The largest allowed mean.
        what: The measured quantity, for messages.

    Raises:
        AssertionError: if the mean is above the limit, or too uncertain to decide.
        ValueError: with fewer than two samples.

    >>> assert_at_most([0.041, 0.043, 0.042], 0.05, "p99 delay (s)")
    >>> assert_at_most([0.01, 0.09, 0.02], 0.05, "p99 delay (s)")
    Traceback (most recent call last):
    AssertionError: p99 delay (s): 0.04 [0, 0.148] (n = 3) is too uncertain for at most 0.05; add repeats
    """
    _decide(samples, limit, what, "at most")


def assert_at_least(samples: Sequence[float], limit: float, what: str = "the mean") -> None:
    """Asserts that the mean of repeated measurements is at least `limit`; as `assert_at_most`.

    >>> assert_at_least([8.1e6, 8.3e6, 8.2e6], 9e6, "goodput (bit/s)")
    Traceback (most recent call last):
    AssertionError: goodput (bit/s): 8.2e+06 [7.95e+06, 8.45e+06] (n = 3) is not at least 9e+06
    """
    _decide(samples, limit, what, "at least")


def _decide(
    samples: Sequence[float], limit: float, what: str, relation: Literal["at most", "at least"]
) -> None:
    from longfat.analysis.statistics import interval

    values = [float(sample) for sample in samples]
    if len(values) < 2 or not all(value == value for value in values):  # noqa: PLR0124 - NaN
        raise ValueError(f"{what}: {len(values)} samples: at least 2 numbers are needed for an interval")
    found = interval(values)
    sign = 1 if relation == "at most" else -1
    worst, best = (found.high, found.low)[::sign]
    if sign * (worst - limit) <= 0:
        return
    shown = f"{what}: {found.mean:.3g} [{found.low:.3g}, {found.high:.3g}] (n = {len(values)})"
    if sign * (best - limit) > 0:
        raise AssertionError(f"{shown} is not {relation} {limit:.3g}")
    raise AssertionError(f"{shown} is too uncertain for {relation} {limit:.3g}; add repeats")


def assert_claim(
    metric: str,
    relation: str,
    value: str | float | None = None,
    *,
    of: Protocol | type[Extension] | Mapping[str, Any] | str,
    against: Protocol | type[Extension] | Mapping[str, Any] | str | None = None,
    by: str | None = None,
    path: Path | Mapping[str, Any] | None = None,
    topology: Topology | Mapping[str, Any] | None = None,
    size: str | None = None,
    duration: str | None = None,
    workload: Any = None,
    traffic: Any = (),
    repeats: int = 10,
    seed: int = 1,
) -> Run:
    """Asserts that a claim about simulated trials holds, and returns the run.

    Args:
        metric: Metric of the claim ("goodput", "queueing_delay_p99", ...).
        relation: Relation of a study's claims: "at-least" and "at-most" with `value`, "higher" and "lower"
            with `against`, ...
        value: Limit with its unit ("8Mbit/s").
        of: The tested protocol: a name, an object, or a controller class.
        against: The protocol to compare with.
        by: Margin in percent ("5%").
        path: Path of the trials.
        topology: Topology instead of a path.
        size: Size of a transferred file.
        duration: Duration of an unlimited transfer, instead of a size.
        workload: Keys of another workload.
        traffic: Further flows, which share the network: an entry of `traffic` in a study, or a list.
        repeats: Number of trials of each protocol.
        seed: Random seed.

    Raises:
        AssertionError: with verdict, metric, values, n and the errors of failed trials (such as an exception
            of the class), if the claim fails or is undecided.
        ValueError: with the key and what is allowed.
    """
    import longfat
    from longfat.api.specification import workload_of
    from longfat.presentation.run import notes
    from longfat.study.tables import protocol_settings

    others = [] if against is None else [{"name": "other", **protocol_settings(against)}]
    network = {"path": path} if topology is None else {"topology": topology}
    claim = {"metric": metric, "relation": relation, "value": value, "by": by, "of": OURS}
    if others:
        claim["against"] = "other"
    study = {
        "title": f"{metric} {relation}",
        **network,
        **({"traffic": traffic} if traffic else {}),
        "workload": workload_of(size, duration, workload),
        "protocols": [{"name": OURS, **protocol_settings(of)}, *others],
        "claims": [
            {
                "id": "asserted",
                "text": f"{metric} is {relation}",
                **{key: given for key, given in claim.items() if given is not None},
            }
        ],
    }
    run = longfat.sweep(study, seeds=repeats, seed=seed)
    verdict = run.claims[0]
    if verdict.verdict != "holds":
        parts = [verdict.detail, *notes.failures(run.cells)]
        raise AssertionError(f"{metric} {relation} {verdict.verdict}: {'; '.join(filter(None, parts))}")
    return run
