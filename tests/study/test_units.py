from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.study import units
from longfat.study.vocabulary import check, vocabulary

UNITS = [
    "ns",
    "us",
    "ms",
    "s",
    "min",
    "bit/s",
    "kbit/s",
    "Mbit/s",
    "Gbit/s",
    "B",
    "kB",
    "KiB",
    "MB",
    "MiB",
    "%",
    "pkt",
]


@given(st.integers(0, 10**9), st.sampled_from(UNITS))
def test_written_quantities_read_back(magnitude: int, unit: str) -> None:
    quantity = units.parse(f"{magnitude}{unit}")
    assert units.parse(str(quantity)) == quantity


@given(st.decimals(0, 10**6, places=3), st.sampled_from(UNITS))
def test_decimals_are_exact(magnitude: object, unit: str) -> None:
    assert units.parse(f"{magnitude:f}{unit}").magnitude == Fraction(str(magnitude))


@given(
    st.integers(0, 1000), st.integers(1, 50), st.integers(0, 60), st.sampled_from(["ms", "%", "kbit/s", ""])
)
def test_a_range_has_both_ends_and_even_steps(start: int, step: int, count: int, unit: str) -> None:
    stop = start + step * count
    points = units.expand(f"{start}{unit}", f"{stop}{unit}", f"{step}{unit}")
    values = [units.parse(point).magnitude for point in points]
    assert values == [start + step * i for i in range(count + 1)]


def test_a_range_of_fractions_includes_its_end() -> None:
    assert units.expand("0%", "0.3%", "0.1%") == ["0%", "0.1%", "0.2%", "0.3%"]
    assert units.expand("500us", "2ms", "500us") == ["500us", "1000us", "1500us", "2000us"]


@pytest.mark.parametrize(
    ("first", "last", "step", "words"),
    [
        ("1ms", "10Mbit/s", "1ms", "different dimensions"),
        ("1ms", "5ms", "0ms", "above 0"),
        ("5ms", "1ms", "1ms", "below"),
        ("1ms", "60min", "1ns", "too many"),
        ("1", "2", "0.5", "whole numbers"),
        ("fast", "2ms", "1ms", "not a quantity"),
        ("1mss", "2ms", "1ms", 'unknown unit "mss"'),
        (True, 2, 1, "not a quantity"),
    ],
)
def test_a_wrong_range_is_an_error_with_its_reason(
    first: object, last: object, step: object, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        units.expand(first, last, step)


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("delay", ["1ns", "1us", "1ms", "1s", "1min"]),
        ("rate", ["1bit/s", "1kbit/s", "1Mbit/s", "1Gbit/s"]),
        ("loss", ["1%"]),
    ],
)
def test_units_match_the_native_module(key: str, texts: list[str]) -> None:
    assert key in vocabulary()["path"]["properties"]
    for text in texts:
        assert units.parse(text).value > 0
        assert check("path", {"rate": "1Mbit/s", key: text}) == ()
