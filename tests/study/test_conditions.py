"""Conditions of claims."""

from __future__ import annotations

from longfat.study.conditions import Condition


def test_multiples_of_the_bdp_are_ordered() -> None:
    condition = Condition.parse("0.5BDP..2BDP")
    met = [value for value in ("0.5BDP", "1BDP", "10BDP", "20pkt") if condition.matches(value)]
    assert met == ["0.5BDP", "1BDP"]
    # A cell has the multiple and the bytes.
    assert Condition.parse(">=100kB").incomparable(["0.5BDP", "1BDP"]) is None
    assert Condition.parse(">=1s").incomparable(["0.5BDP"]) == ("1s", "0.5BDP")
