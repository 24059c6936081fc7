"""Loss of links, estimated from the shares of probes that routers answered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longfat.analysis.inference.losses import by_link, is_known, losses, usable
from longfat.analysis.inference.samples import EXCEEDED, REACHED, Router


def _router(ttl: int, sent: int, answered: int, *, is_end: bool = False, is_echo: bool = True) -> Router:
    router = Router(ttl, sent=sent, answered=answered)
    router.addresses[f"10.0.0.{ttl}"] = answered
    router.kinds[REACHED if is_end else EXCEEDED] = answered
    router.answers[f"10.0.0.{ttl}", 600] = 600 if is_end and is_echo else 576
    return router


def _drawn(shares: list[float], sent: int, random: np.random.Generator) -> list[Router]:
    last = len(shares)
    return [
        _router(ttl, sent, int(random.binomial(sent, share)), is_end=ttl == last)
        for ttl, share in enumerate(shares, 1)
    ]


def test_loss_is_found_on_the_link_that_loses() -> None:
    """The mean of many estimates is unbiased on lossy links and in sum, and nearly so on the others."""
    random = np.random.default_rng(3)
    each = np.array(
        [
            [loss.each_way for loss in losses(_drawn([1.0, 0.98**2, 0.98**2, 0.9506**2], 900, random))]
            for _ in range(100)
        ]
    )
    assert each.mean(axis=0) == pytest.approx([0.0, 0.02, 0.0, 0.03], abs=0.002)
    assert 1 - (1 - each).prod(axis=1).mean() == pytest.approx(0.0494, abs=0.002)


def test_intervals_cover_the_loss() -> None:
    random = np.random.default_rng(4)
    found = [losses(_drawn([0.98**2], 900, random))[0] for _ in range(200)]
    assert np.mean([one.low <= 1 - 0.98**2 <= one.high for one in found]) >= 0.9


def test_no_loss_has_an_upper_bound() -> None:
    (found,) = losses([_router(1, 300, 300, is_end=True)])
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0.002 < found.high < 0.02


@pytest.mark.parametrize("answered", [150, 270])
def test_a_router_that_limits_its_answers_is_left_out(answered: int) -> None:
    routers = [_router(1, 300, answered), _router(2, 300, 297), _router(3, 300, 298, is_end=True)]
    assert [router.ttl for router in usable(routers)] == [2, 3]
    assert usable(routers[:1], limited=[1]) == []


def test_only_echoes_of_the_end_count() -> None:
    routers = [_router(1, 300, 300), _router(2, 300, 200, is_end=True, is_echo=False)]
    assert [router.ttl for router in usable(routers)] == [1]


def test_the_loss_of_joined_links_is_assigned_to_the_last() -> None:
    from longfat.analysis.inference.links import Link
    from longfat.results import Interval

    def link(*ttls: int) -> Link:
        none = Interval(0.0, 0.0, 0.0)
        return Link(ttls, "", none, None, None, None, none)

    routers = [_router(2, 1000, 980), _router(3, 1000, 980), _router(4, 1000, 941, is_end=True)]
    first, second = by_link([link(1, 2), link(3, 4)], losses(routers))
    assert first is not None
    assert second is not None
    assert [first.value, second.value] == pytest.approx([0.02, 1 - 0.941 / 0.98])
    first, last = by_link([link(1), link(2, 3, 4)], losses(routers))
    assert first is None
    assert last is not None
    assert last.value == pytest.approx(0.059)
    assert math.isclose(last.each_way, 1 - math.sqrt(0.941))


def test_precision_is_absolute_or_relative() -> None:
    assert not is_known(_router(1, 100, 100), 0.007, 1 / 3)
    assert is_known(_router(1, 300, 300), 0.007, 1 / 3)
    assert not is_known(_router(1, 300, 285), 0.007, 1 / 3)
    assert is_known(_router(1, 1000, 950), 0.007, 1 / 3)
