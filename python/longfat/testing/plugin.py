"""The pytest plugin: fixtures that start relays and emulated paths and stop them after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from longfat.api.relays import Relay
    from longfat.api.tcp_relays import TcpRelay
    from longfat.study.tables import Path
    from longfat.testing.emulation import Emulated


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that turns skips of longfat's fixtures into failures."""
    parser.addoption(
        "--longfat-no-skips",
        action="store_true",
        help="Fail tests that longfat's fixtures would skip because this machine cannot emulate paths.",
    )


def _skip(config: pytest.Config, reason: str) -> NoReturn:
    if config.getoption("--longfat-no-skips"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


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


@pytest.fixture
def longfat_tcp_relay() -> Iterator[Callable[..., TcpRelay]]:
    """A function that relays TCP connections over an emulated path, with the parameters of `longfat.relay`.

    The relays stop at the end of the test and reset their connections.
    """
    import longfat

    with ExitStack() as stack:

        def start(path: Path | Mapping[str, Any], to: str | None = None, **options: Any) -> TcpRelay:
            if to is not None:
                options["tcp"] = True
            return stack.enter_context(longfat.relay(path, to, **options))

        yield start


@pytest.fixture(scope="session")
def longfat_emulation(pytestconfig: pytest.Config) -> Callable[..., Emulated]:
    """The function `longfat.testing.emulation.emulate`, for programs at both ends of an emulated path.

    Tests are skipped, with the reason and its fix, if this machine cannot emulate paths. With the option
    `--longfat-no-skips` they fail.
    """
    from longfat.testing import emulation

    lacking = emulation.missing()
    if lacking is not None:
        _skip(pytestconfig, lacking)
    return emulation.emulate
