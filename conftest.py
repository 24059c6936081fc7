"""Collects doctests only from files with examples: collection imports a file in every process of pytest."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leaves out modules of doctests without an example."""
    collectors = yield
    modules = [found for found in collectors if isinstance(found, DoctestModule)]
    if modules and b">>> " not in file_path.read_bytes():
        return [found for found in collectors if found not in modules]
    return collectors
