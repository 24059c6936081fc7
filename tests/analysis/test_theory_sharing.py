"""Max-min shares: textbook cases, and what makes an allocation max-min fair, for any network."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.analysis.theory import sharing


def test_the_textbook_example() -> None:
    """Bertsekas and Gallager, Data Networks, section 6.5.2: a chain of links, whose long flow gets least."""
    capacities = {"a": 1.0, "b": 1.0, "c": 2.0}
    routes = [["a", "b", "c"], ["a"], ["b"], ["b"], ["c"]]
    third = 1 / 3
    expected = [third, 1 - third, third, third, 2 - third]
    assert sharing.max_min(capacities, routes) == pytest.approx(expected)


def test_access_links_below_the_fair_share_leave_room() -> None:
    """Five hosts of 5, 10, 15, 20 and 25 Mbit/s on 45 Mbit/s: 5, then 10 for each that can."""
    capacities = {"shared": 45.0, **{f"access {i}": 5.0 * i for i in range(1, 6)}}
    routes = [[f"access {i}", "shared"] for i in range(1, 6)]
    assert sharing.max_min(capacities, routes) == pytest.approx([5, 10, 10, 10, 10])


def test_nothing_asked_for_is_nothing_given() -> None:
    assert sharing.max_min({"a": 3.0}, [["a"], ["a"]], [0.0, math.inf]) == [0.0, 3.0]
    assert sharing.max_min({}, [[]]) == [math.inf]
    assert sharing.max_min({"a": 3.0}, []) == []


@st.composite
def networks(draw: st.DrawFn) -> tuple[dict[int, float], list[list[int]], list[float]]:
    links = draw(st.integers(1, 6))
    capacities = {link: draw(st.floats(0.1, 100)) for link in range(links)}
    routes = draw(
        st.lists(
            st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True),
            min_size=1,
            max_size=8,
        )
    )
    demands = [draw(st.one_of(st.just(math.inf), st.floats(0.01, 100))) for _ in routes]
    return capacities, routes, demands


@given(networks())
def test_shares_are_feasible_and_max_min_fair(
    network: tuple[dict[int, float], list[list[int]], list[float]],
) -> None:
    capacities, routes, demands = network
    rates = sharing.max_min(capacities, routes, demands)
    near = 1 + 1e-9
    used = {
        link: sum(r for r, route in zip(rates, routes, strict=True) if link in route) for link in capacities
    }
    assert all(used[link] <= capacities[link] * near for link in capacities)
    for rate, route, demand in zip(rates, routes, demands, strict=True):
        assert rate <= demand * near
        if rate >= demand / near:
            continue
        # Each flow that wants more has a link that is full and on which none has more than it.
        assert any(
            used[link] >= capacities[link] / near
            and all(o <= rate * near for o, other in zip(rates, routes, strict=True) if link in other)
            for link in route
        )


@given(st.lists(st.floats(0.01, 1e9), min_size=1, max_size=20), st.floats(0.1, 10))
def test_jains_index_is_a_share_and_knows_no_unit(rates: list[float], scale: float) -> None:
    found = sharing.jain(rates)
    assert 1 / len(rates) - 1e-9 <= found <= 1 + 1e-9
    assert sharing.jain([rate * scale for rate in rates]) == pytest.approx(found)
