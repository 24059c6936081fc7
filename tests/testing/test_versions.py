"""Comparison of two versions: rates of wrong decisions, drift, messages."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from longfat.testing import UndecidedComparisonWarning, assert_no_worse, compare_versions


class Machine:
    """A machine whose measurements vary (standard deviation of their logarithm), and whose speed drifts."""

    def __init__(self, seed: int, drift: float = 0.0, noise: float = 0.05) -> None:
        self._random = np.random.default_rng(seed)
        self._drift, self._noise, self._count = drift, noise, 0

    def version(self, mean: float) -> Callable[[int], float]:
        def measure(pair: int) -> float:
            self._count += 1
            return mean * (1 - self._drift) ** self._count * math.exp(self._random.normal(0, self._noise))

        return measure


def outcomes(
    trials: int, new: float, better: str = "higher", drift: float = 0.0, noise: float = 0.05
) -> list[str]:
    found: list[str] = []
    for seed in range(trials):
        machine = Machine(seed, drift, noise)
        compared = compare_versions(machine.version(new), machine.version(100.0), better)  # type: ignore[arg-type]
        found.append(compared.outcome)
    return found


def test_a_version_is_hardly_ever_worse_than_itself() -> None:
    found = outcomes(200, 100.0)
    assert found.count("no worse") >= 198


def test_ten_percent_less_are_found() -> None:
    assert outcomes(200, 90.0).count("worse") >= 190
    assert outcomes(200, 111.0, "lower").count("worse") >= 190
    assert outcomes(50, 111.0, "higher").count("no worse") >= 49


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_noise_causes_no_false_alarms(better: str) -> None:
    found = outcomes(100, 100.0, better, noise=0.25)
    assert found.count("undecided") > 50
    assert found.count("worse") <= 1


def test_ten_percent_less_are_found_before_intervals_are_as_narrow_as_the_margin() -> None:
    for new, better in ((90.0, "higher"), (111.0, "lower")):
        assert outcomes(100, new, better, noise=0.2).count("worse") >= 95
    # A change within the margin is hardly ever reported.
    assert outcomes(100, 97.0, noise=0.2).count("worse") <= 20


def test_a_drift_of_the_machine_is_no_difference() -> None:
    assert outcomes(100, 100.0, drift=0.01).count("worse") == 0


def test_a_clear_comparison_ends_early() -> None:
    machine = Machine(1)
    found = compare_versions(machine.version(50.0), machine.version(100.0), "higher")
    assert (found.outcome, len(found.new), len(found.old)) == ("worse", 12, 12)
    assert found.ratio.low < 0.5 < found.ratio.high


def test_versions_are_measured_in_turns() -> None:
    order: list[tuple[str, int]] = []

    def version(name: str) -> Callable[[int], float]:
        def measure(pair: int) -> float:
            order.append((name, pair))
            return 1.0

        return measure

    assert_no_worse(version("new"), version("old"), "higher")
    assert order[:4] == [("old", 1), ("new", 1), ("new", 2), ("old", 2)]


def test_messages_name_ratio_and_cause() -> None:
    machine = Machine(3)
    with pytest.raises(AssertionError, match=r"^goodput of the new version is worse by more than 5%: new "):
        assert_no_worse(machine.version(50.0), machine.version(100.0), "higher", "goodput")


def test_an_undecided_comparison_is_a_warning() -> None:
    machine = Machine(3)
    with pytest.warns(
        UndecidedComparisonWarning, match="^goodput: .* too uncertain for a margin of 5%; raise"
    ):
        found = assert_no_worse(machine.version(97.0), machine.version(100.0), "higher", "goodput", most=12)
    assert (found.outcome, len(found.new)) == ("undecided", 12)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"by": "5"}, "percentage"),
        ({"by": "100%"}, "out of range"),
        ({"most": 11}, "at least 12"),
        ({"better": "more"}, '"higher" or "lower"'),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, object], words: str) -> None:
    given: dict[str, object] = {"better": "higher", **wrong}
    with pytest.raises(ValueError, match=words):
        compare_versions(lambda pair: 1.0, lambda pair: 1.0, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_measurements_must_be_positive_numbers(value: float) -> None:
    with pytest.raises(ValueError, match="new: measured"):
        compare_versions(lambda pair: value, lambda pair: 1.0, "higher")
