"""The box of a queue has room for exactly its limit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.explorer.bundled import run

LIMITS = [1, 2, 10, 50, 67, 100, 333, 1000, 1040, 1041, 3000, 10_000]
WIDTH, HEIGHT = 52, 24


@pytest.fixture(scope="module")
def grids(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    code = f"console.log(JSON.stringify({LIMITS}.map(limit => module.gridOf({WIDTH}, {HEIGHT}, limit))))"
    return dict(zip(LIMITS, run(tmp_path_factory.mktemp("grid"), "queue-grid", code), strict=True))


@pytest.mark.parametrize("limit", LIMITS)
def test_a_full_queue_fits_into_its_box(grids: dict[int, dict[str, Any]], limit: int) -> None:
    grid = grids[limit]
    assert grid["rows"] * grid["side"] <= HEIGHT
    assert grid["columns"] * grid["pitch"] == pytest.approx(WIDTH)
    assert grid["pitch"] >= grid["side"] - 1e-9
    assert grid["rows"] * grid["columns"] * grid["each"] >= limit


def test_each_square_is_one_packet_while_it_is_visible(grids: dict[int, dict[str, Any]]) -> None:
    assert {grid["each"] for limit, grid in grids.items() if limit <= WIDTH * HEIGHT} == {1}
    assert grids[3000]["each"] == 3


@pytest.mark.parametrize("limit", LIMITS)
def test_the_filled_part_of_the_box_is_that_of_the_queue(
    grids: dict[int, dict[str, Any]], limit: int
) -> None:
    grid = grids[limit]
    for packets in (limit / 4, limit / 2, limit):
        columns = -(-packets // (grid["rows"] * grid["each"]))
        assert columns * grid["pitch"] / WIDTH == pytest.approx(packets / limit, abs=1 / grid["columns"])
