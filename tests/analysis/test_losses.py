"""Loss of links, estimated from the shares of probes that routers answered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longfat.analysis.inference.links import Link
from longfat.analysis.inference.losses import by_link, is_known, losses, usable
from longfat.analysis.inference.samples import EXCEEDED, REACHED, Router
from longfat.results.run import Interval


def _router(ttl: int, sent: int, answered: int, *, is_end: bool = False, is_echo: bool = True) -> Router:
    router = Router(ttl, sent=sent, answered=answered)
    router.addresses[f"10.0.0.{ttl}"] = answered
    router.kinds[REACHED if is_end else EXCEEDED] = answered
    router.answers[f"10.0.0.{ttl}", 600] = 600 if is_end and is_echo else 576
    return router


def _link(*ttls: int) -> Link:
    none = Interval(0.0, 0.0, 0.0)
    return Link(ttls, "", none, None, None, None, none)


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


def test_a_loss_that_fits_two_links_is_that_of_both_together() -> None:
    """All probes to the first router were answered, so it may lose nothing at all."""
    (found,) = losses([_router(1, 150, 150), _router(2, 300, 297, is_end=True)])
    assert (found.before, found.ttl) == (0, 2)
    assert found.value == pytest.approx(0.01)
    assert 0.0 < found.low < 0.01 < found.high
    links = [_link(1), _link(2)]
    assert by_link(links, [found]) == [None, found]


def test_the_loss_of_the_second_link_is_not_that_of_the_first() -> None:
    """Over many measurements of 0.3 to 2 % on link 2 alone, no interval of link 1 alone excludes 0."""
    random = np.random.default_rng(5)
    for share in (0.997, 0.99, 0.98):
        found = [losses(_drawn([1.0, share, share], 300, random)) for _ in range(100)]
        assert all(one.low == 0.0 for all_ in found for one in all_ if one.ttl == 1)
        total = [1 - math.prod(1 - one.value for one in all_) for all_ in found]
        assert np.mean(total) == pytest.approx(1 - share, abs=0.002)
        assert np.mean([any(one.ttl == 2 and one.value > 0 for one in all_) for all_ in found]) > 0.4


def test_a_loss_of_the_first_link_stays_there() -> None:
    random = np.random.default_rng(6)
    found = [losses(_drawn([0.98] * 4, 300, random)) for _ in range(100)]
    alone = [all_[0] for all_ in found if (all_[0].before, all_[0].ttl) == (0, 1) and all_[0].value > 0]
    assert len(alone) > 95
    assert np.mean([one.low <= 0.02 <= one.high for one in alone]) >= 0.9


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
    routers = [_router(2, 1000, 980), _router(3, 1000, 980), _router(4, 1000, 941, is_end=True)]
    first, second = by_link([_link(1, 2), _link(3, 4)], losses(routers))
    assert first is not None
    assert second is not None
    assert [first.value, second.value] == pytest.approx([0.02, 1 - 0.941 / 0.98])
    first, last = by_link([_link(1), _link(2, 3, 4)], losses(routers))
    assert first is None
    assert last is not None
    assert last.value == pytest.approx(0.059)
    assert math.isclose(last.each_way, 1 - math.sqrt(0.941))


def test_precision_is_absolute_or_relative() -> None:
    assert not is_known(_router(1, 100, 100), 0.007, 1 / 3)
    assert is_known(_router(1, 300, 300), 0.007, 1 / 3)
    assert not is_known(_router(1, 300, 285), 0.007, 1 / 3)
    assert is_known(_router(1, 1000, 950), 0.007, 1 / 3)
