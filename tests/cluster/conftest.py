"""A cluster that tests share if they do not disturb it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.processes import machines


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers. All tests share it."""
    with machines(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        yield cluster.address
