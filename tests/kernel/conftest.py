"""Requirements of tests of kernel controllers. Tests without them are skipped with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests import requirements

from longfat.kernel.controllers import available


@pytest.fixture(scope="session")
def _bpf() -> None:
    state = available("vegas", source="bpf")
    if not state.ok:
        requirements.skip("bpf", f"{state.reason}: {state.remedy}" if state.remedy else state.reason)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The modules here need Linux to import."""
    if sys.platform != "linux" and collection_path.name != "conftest.py":
        return True
    return None
