"""The pytest plugin: fixtures that start relays and emulated paths and stop them after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from longfat.api.relays import Relay
    from longfat.study.tables import Path
    from longfat.testing.emulation import Emulated


@pytest.fixture
def longfat_relay() -> Iterator[Callable[..., Relay]]:
    """A function that relays UDP datagrams over an emulated path, with the parameters of `longfat.relay`.

    The relays stop at the end of the test.
    """
    import longfat

    with ExitStack() as stack:

        def start(path: Path | Mapping[str, Any], to: str, *, seed: int = 1) -> Relay:
            return stack.enter_context(longfat.relay(path, to, seed=seed))

        yield start


@pytest.fixture(scope="session")
def longfat_emulation() -> Callable[..., Emulated]:
    """The function `longfat.testing.emulation.emulate`, for programs at both ends of an emulated path.

    Tests are skipped, with the reason and its fix, if this machine cannot emulate paths.
    """
    from longfat.testing import emulation

    lacking = emulation.missing()
    if lacking is not None:
        pytest.skip(lacking)
    return emulation.emulate
