"""Batches of trials of one cell: grouping and results."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from longfat import _native
from longfat.results.run import Cell
from longfat.results.trial import Records, Trial
from longfat.runner.batches import Batches
from longfat.store.planning import PlannedTrials, plan
from longfat.store.present import Present
from longfat.system.flow_table import flow_table
from longfat.worlds.executor import record_from_json
from longfat.worlds.sim import Simulation

SPEC = {
    "path": {"rate": "10Mbit/s", "delay": "5ms", "loss": "3%"},
    "protocol": {"kind": "tcp"},
    "workload": {"kind": "file", "size": "50kB"},
}


def trials(name: str, count: int, spec: dict[str, object] | None = None) -> list[Trial]:
    cell = Cell("sim", name, {}, SPEC if spec is None else spec)
    return [Trial(f"{name}{number}", cell, number, 7) for number in range(count)]


def names(batch: Sequence[Trial] | None) -> list[str]:
    return [f"{trial.cell.protocol}{trial.number}" for trial in batch or ()]


def planned(**counts: int) -> PlannedTrials:
    cells = [Cell("sim", name, {}, SPEC | {"name": name}) for name in counts]
    return plan(cells, list(counts.values()), 7, "1", Present()).missing


def test_cells_take_turns_and_short_trials_share_a_call() -> None:
    waiting = Batches(planned(a=100, b=3), most=40)
    first, second = waiting.next(0.05), waiting.next(0.05)
    assert first is not None
    assert second is not None
    assert [names(first), names(second)] == [["a0"], ["b0"]]
    waiting.measured(first, 0.005)
    waiting.measured(second, 0.5)
    assert names(waiting.next(0.05)) == [f"a{number}" for number in range(1, 11)]
    assert names(waiting.next(0.05)) == ["b1"]
    waiting.measured(first, 0.0)
    assert len(names(waiting.next(0.05))) == 40, "at most 40 per call"
    assert names(waiting.next(0.05)) == ["b2"]
    assert [len(names(waiting.next(0.05))) for _ in range(3)] == [40, 9, 0]


def test_long_trials_come_first_once_their_duration_is_known() -> None:
    waiting = Batches(planned(a=9, b=9, c=2), most=40, longest_first=True)
    seconds = {"a": 1.0, "b": 5.0, "c": 2.0}
    for batch in [waiting.next(1.0) for _ in seconds]:
        assert batch is not None
        waiting.measured(batch, seconds[batch.cell.protocol])
    order = [names(waiting.next(1.0))[0][0] for _ in range(17)]
    assert order == ["b"] * 8 + ["c"] + ["a"] * 8


def test_the_order_follows_the_latest_durations() -> None:
    waiting = Batches(planned(a=99, b=99), most=1, longest_first=True)
    first = {batch.cell.protocol: batch for batch in (waiting.next(1.0), waiting.next(1.0)) if batch}
    for turn in range(80):
        waiting.measured(first["a"], 1.0 + turn % 2)
        waiting.measured(first["b"], 2.0 - turn % 2)
        assert names(waiting.next(1.0))[0][0] == "ba"[turn % 2]


def test_each_job_gets_one_trial_of_unknown_duration() -> None:
    waiting = Batches(planned(a=100), most=40)
    first = [waiting.next(1.0, 3) for _ in range(4)]
    assert [names(batch) for batch in first] == [["a0"], ["a1"], ["a2"], []]
    assert first[1] is not None
    waiting.measured(first[1], 0.1)
    assert len(names(waiting.next(1.0, 3))) == 10


def test_cells_share_the_jobs_while_their_durations_are_unknown() -> None:
    waiting = Batches(planned(a=100, b=100, c=100), most=40)
    first = [waiting.next(1.0, 4) for _ in range(5)]
    assert [names(batch) for batch in first] == [["a0"], ["b0"], ["c0"], ["a1"], []]
    assert first[1] is not None
    waiting.measured(first[1], 0.1)
    assert names(waiting.next(1.0, 4)) == [f"b{number}" for number in range(1, 11)]


def test_the_last_calls_are_shorter() -> None:
    waiting = Batches(planned(a=2001), most=1000, longest_first=True)
    first = waiting.next(1.0, 2)
    assert first is not None
    waiting.measured(first, 0.01)
    sizes = []
    while batch := waiting.next(1.0, 2):
        sizes.append(len(batch))
    assert sum(sizes) == 2000
    assert sizes[:16] == [100] * 16
    assert sizes[16:] == sorted(sizes[16:], reverse=True)
    assert min(sizes[:-1]) == 25
    assert len(sizes) < 40


def test_many_cells_cost_no_more_than_few() -> None:
    def seconds(cells: int) -> float:
        waiting = Batches(planned(**{f"p{number}": 3 for number in range(cells)}), 1, longest_first=True)
        started = time.process_time()
        while batch := waiting.next(1.0):
            waiting.measured(batch, float(batch.numbers[0]))
        return (time.process_time() - started) / cells

    assert seconds(3000) < 8 * seconds(100)


def test_trials_in_one_call_have_the_records_of_single_calls() -> None:
    world = Simulation(1)
    try:
        some = trials("a", 5)[1:]
        together = world.run_all(some)
    finally:
        world.close()
    assert together.trials["trial"].to_list() == [1, 2, 3, 4]
    assert together.failed == 0
    assert together.flows["trial"].to_list() == [1, 2, 3, 4]
    alone = [record_from_json(_native.simulate(trial.spec_json)) for trial in some]
    for name in together.trials.columns[2:]:
        assert together.trials[name].to_list() == [(record.metrics or {}).get(name) for record in alone]
    assert together.flows.drop("trial").equals(flow_table(*(record.flows for record in alone)))


def test_failed_trials_have_an_error_and_no_metrics() -> None:
    spec = SPEC | {"path": {"delay": "5ms", "loss": "100%"}}
    found = _native.simulate_trials(json.dumps(spec | {"seed": 1}), [0, 1])
    assert all(error is not None for error in found["errors"])
    assert found["metrics"] == {}


def test_records_of_another_process_are_the_same() -> None:
    world = Simulation(1)
    try:
        found = world.run_all(trials("a", 3))
    finally:
        world.close()
    there = Records.from_arrow(found.to_arrow())
    assert there.trials.equals(found.trials)
    assert there.flows.equals(found.flows)
    assert there.seconds == found.seconds


def test_a_cancelled_call_returns_the_finished_trials() -> None:
    cancel = _native.Cancel()
    cancel.cancel()
    found = _native.simulate_trials(json.dumps(SPEC | {"seed": 1}), list(range(1000)), cancel)
    assert len(found["errors"]) <= 1
