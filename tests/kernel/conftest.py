"""What tests of kernel controllers need of the machine; where it lacks that, they are skipped and say so."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from tests import requirements
from tests.kernel.namespaces import in_namespace, tun

from longfat.kernel.controllers import available


@pytest.fixture(scope="session")
def _bpf() -> None:
    state = available("vegas", source="bpf")
    if not state.ok:
        requirements.skip("bpf", f"{state.reason}: {state.remedy}" if state.remedy else state.reason)


@pytest.fixture(scope="session")
def _namespaces() -> None:
    try:
        in_namespace(socket.gethostname)
    except OSError as error:
        requirements.skip("netns", f"no network namespace can be made: {error}")


@pytest.fixture(scope="session")
def _tun(_namespaces: None) -> None:
    try:
        in_namespace(_try_tun)
    except OSError as error:
        requirements.skip("tun", f"no TUN device can be made: {error}")


def _try_tun() -> None:
    tun("try", "10.77.0.1")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The modules here name what Linux alone has."""
    if sys.platform != "linux" and collection_path.name != "conftest.py":
        return True
    return None
