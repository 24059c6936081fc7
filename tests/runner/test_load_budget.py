from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import cases
from tests.waiting import PATIENCE_S

from longfat.worlds.processes import LoadBudget


@settings(max_examples=cases(40))
@given(st.lists(st.integers(0, 150), min_size=1, max_size=12))
def test_loads_never_exceed_the_limit_unless_alone(loads: list[int]) -> None:
    budget, guard = LoadBudget(100), threading.Lock()
    running: list[int] = []
    worst: list[tuple[int, int]] = []

    def _hold(load: int) -> None:
        with budget.share(load):
            with guard:
                running.append(load)
                worst.append((sum(running), len([value for value in running if value > 0])))
            time.sleep(0.001)
            with guard:
                running.remove(load)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_hold, loads))
    assert len(worst) == len(loads)
    assert all(total <= 100 or count == 1 for total, count in worst)


def test_an_open_budget_admits_all() -> None:
    budget = LoadBudget(1)
    entered = threading.Barrier(4, timeout=PATIENCE_S)

    def _hold() -> None:
        with budget.share(10):
            entered.wait()

    threads = [threading.Thread(target=_hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    budget.open()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not entered.broken
