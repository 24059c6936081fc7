"""Hands trials to an executor and their records to the store."""

from __future__ import annotations

import dataclasses
import queue
from concurrent.futures import Future

import polars as pl

from longfat.results.trial import Records
from longfat.runner.batches import Batches
from longfat.runner.progress import Reporter
from longfat.runner.sampling import Budget
from longfat.store.planning import CellTrials, PlannedTrials
from longfat.store.store import Store
from longfat.worlds.executor import KILLED, DividedCallError, Executor

QUEUE_PER_JOB = 4
"""Calls submitted ahead for each job, so that no job waits."""


def run_trials(
    todo: PlannedTrials, executor: Executor, store: Store, reporter: Reporter, budget: Budget
) -> None:
    """Runs the trials of one world and stores their records, until the budget is spent.

    What has finished is stored also if a KeyboardInterrupt or a ValueError (a mistake in a trial) ends it.
    """
    waiting = Batches(todo, executor.most_trials, longest_first=executor.longest_first)
    running: dict[Future[Records], CellTrials] = {}
    finished: queue.SimpleQueue[Future[Records]] = queue.SimpleQueue()

    def hand_over() -> None:
        # After the budget's end, running trials complete: to drop slow ones would bias the result.
        most = 0 if budget.is_over else executor.jobs * QUEUE_PER_JOB
        while (
            len(running) < most
            and (trials := waiting.next(executor.seconds_per_call, executor.jobs)) is not None
        ):
            await_call(trials, executor.submit(trials))

    def await_call(trials: CellTrials, future: Future[Records]) -> None:
        running[future] = trials
        future.add_done_callback(finished.put)

    try:
        hand_over()
        while running:
            try:
                future = finished.get(timeout=1.0)
            except queue.Empty:
                store.flush_if_due()
                continue
            trials = running.pop(future)
            try:
                records = _outcome(trials, future)
            except DividedCallError as divided:
                for part in divided.parts:
                    await_call(*part)
                continue
            waiting.measured(trials, records.seconds)
            _add(trials, records, store)
            reporter.advance(len(trials), records.failed)
            hand_over()
            store.flush_if_due()
    except BaseException:
        executor.cancel()
        _keep_finished(running, finished, store)
        raise
    finally:
        try:
            executor.close()
        finally:
            store.flush()


def _outcome(trials: CellTrials, future: Future[Records]) -> Records:
    try:
        return future.result()
    except ValueError as error:
        # Sections, networks and hosts were checked; only contradictions between sections appear this late.
        raise ValueError(f"{trials[0].place}: {error}") from None


def _add(trials: CellTrials, records: Records, store: Store) -> None:
    """Stores the records of the trials that finished, all of them unless the run was cancelled."""
    store.add(trials[0], records)
    killed = records.trials.filter(pl.col("error") == KILLED)["trial"].to_list() if records.failed else ()
    for number in killed:
        store.set_aside(dataclasses.replace(trials[0], number=number))


def _keep_finished(
    running: dict[Future[Records], CellTrials],
    finished: queue.SimpleQueue[Future[Records]],
    store: Store,
) -> None:
    """Stores the trials that finished before the run stopped."""
    while True:
        try:
            future = finished.get_nowait()
        except queue.Empty:
            return
        if future in running and not future.cancelled() and future.exception() is None:
            _add(running.pop(future), future.result(), store)
