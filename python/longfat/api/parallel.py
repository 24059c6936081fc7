"""Calls in several threads, which Ctrl-C ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

T = TypeVar("T")


def parallel(
    work: Sequence[Callable[[], T]], jobs: int, cancel: Callable[[], None], show: Callable[[int], None]
) -> tuple[list[T | None], bool]:
    """Returns the outcomes of all calls, None for those that Ctrl-C cancelled, and whether it did.

    `cancel` ends the running calls, and `show` receives the number of finished ones.
    """
    interrupted = False
    with ThreadPoolExecutor(jobs, thread_name_prefix="trial") as pool:
        futures: list[Future[T]] = [pool.submit(one) for one in work]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                show(done)
        except KeyboardInterrupt:
            interrupted = True
            for future in futures:
                future.cancel()
            cancel()
    return [_outcome(future, interrupted=interrupted) for future in futures], interrupted


def _outcome(future: Future[T], *, interrupted: bool) -> T | None:
    if interrupted and (future.cancelled() or future.exception() is not None):
        return None
    return future.result()
