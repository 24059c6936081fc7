"""Random paths within the intervals of a measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longfat.measurement.path_draws import FACTORS, drawn
from longfat.study.units import number

PATH: dict[str, Any] = {
    "hops": [
        {"rate": "100Mbit/s", "delay": "1ms", "queue": "30000B"},
        {"rate": "20Mbit/s", "delay": "10ms", "queue": "100000B", "loss": "1%"},
    ]
}
HOPS: list[dict[str, Any]] = [
    {"ttls": [1], "delay": ["0.9ms", "1.1ms"], "rate": ["90Mbit/s", "120Mbit/s"]},
    {
        "ttls": [2],
        "delay": ["9ms", "12ms"],
        "rate": ["19Mbit/s", "21Mbit/s"],
        "loss_round_trip": ["1.2%", "2.9%"],
    },
]


def _number(value: Any) -> float:
    found = number(value)
    assert found is not None
    return float(found)


def _draws(queue: Any = "measured", hops: list[dict[str, Any]] = HOPS, count: int = 2000) -> list[Any]:
    random = np.random.default_rng(1)
    return [drawn(PATH, hops, (1, False), queue, random)["hops"] for _ in range(count)]


@pytest.mark.parametrize(
    ("hop", "key", "low", "high"),
    [
        (0, "delay", 0.9e-3, 1.1e-3),
        (1, "delay", 9e-3, 12e-3),
        (1, "rate", 19e6, 21e6),
        (1, "loss", 0.006, 0.0146),
    ],
)
@pytest.mark.slow
def test_draws_have_the_intervals_of_the_measurement(hop: int, key: str, low: float, high: float) -> None:
    values = [_number(links[hop][key]) for links in _draws()]
    assert np.quantile(values, [0.025, 0.975]) == pytest.approx([low, high], rel=0.03)
    assert np.median(values) == pytest.approx(_number(PATH["hops"][hop][key]), rel=0.02)


def test_a_link_without_lost_probes_stays_without_loss() -> None:
    assert all("loss" not in links[0] for links in _draws())


@pytest.mark.parametrize("queue", list(FACTORS))
@pytest.mark.slow
def test_the_limit_of_the_queue_is_as_uncertain_as_its_origin(queue: Any) -> None:
    values = [_number(links[1]["queue"]) / 100_000 for links in _draws(queue)]
    low, high = FACTORS[queue]
    assert low <= min(values) <= low * 1.01
    assert high * 0.99 <= max(values) <= high + 1e-5
    assert all(links[0]["queue"] == "30000B" for links in _draws(queue, count=10))


def test_a_loss_of_two_links_together_is_on_either() -> None:
    together = [HOPS[0], HOPS[1] | {"loss_ttls": [1, 2]}]
    lossy = ["loss" in links[0] for links in _draws(hops=together)]
    assert np.mean(lossy) == pytest.approx(0.5, abs=0.05)
    assert all(("loss" in links[0]) != ("loss" in links[1]) for links in _draws(hops=together))


def test_a_known_path_stays_as_it_is() -> None:
    random = np.random.default_rng(1)
    assert drawn(PATH, (), (1, False), "given", random) == PATH
    alone = {"rate": "20Mbit/s", "delay": "20ms", "loss": "2%"}
    assert drawn(alone, (), (0, False), "given", random) == alone
