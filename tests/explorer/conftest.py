"""The built page of the explorer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import requirements
from tests.browser import Browser
from tests.explorer.driver import Explorer
from tests.explorer.log_driver import LogPage

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "target" / "explorer"
MISSING = ROOT / "target" / "explorer-missing"
"""The reason that `explorer/build --test` writes."""
CRATES = ["explorer", "simulation", "experiment", "network", "transport", "foundation"]
SOURCES = (
    "explorer/src/*",
    "explorer/*.json",
    "explorer/build*",
    *(f"crates/{one}/src/**/*" for one in CRATES),
)


def reason() -> str:
    """Why the page is not built, or how to build it."""
    return MISSING.read_text().strip() if MISSING.is_file() else "make explorer builds it"


@pytest.fixture(scope="session")
def folder() -> Path:
    """The folder that `make explorer` built from the present sources, with WebAssembly."""
    simulator = BUILT / "simulator.js"
    if not simulator.is_file():
        requirements.skip_unbuilt(f"the explorer: {reason()}")
    newest = max(file.stat().st_mtime for pattern in SOURCES for file in ROOT.glob(pattern))
    if newest > simulator.stat().st_mtime:
        requirements.skip_unbuilt(f"the explorer's present sources: {reason()}")
    if b"LONGFAT_SIMULATOR" not in simulator.read_bytes()[:64]:
        requirements.skip_unbuilt("the explorer is built without WebAssembly")
    return BUILT


@pytest.fixture(scope="session")
def log_folder() -> Path:
    """The folder with the page of logs from the present sources, which needs no simulator."""
    script = BUILT / "log.js"
    if not script.is_file():
        requirements.skip_unbuilt(f"the explorer: {reason()}")
    sources = [*ROOT.glob("explorer/src/**/*"), ROOT / "explorer" / "build.mjs"]
    if max(file.stat().st_mtime for file in sources) > script.stat().st_mtime:
        requirements.skip_unbuilt(f"the explorer's present sources: {reason()}")
    return BUILT


@pytest.fixture
def log_page(page: Browser, log_folder: Path, tmp_path: Path) -> LogPage:
    """The page of logs in a window of usual size."""
    page.resize(1280)
    return LogPage(page, log_folder, tmp_path)


@pytest.fixture(scope="session")
def node() -> str:
    """The path of node."""
    found = shutil.which("node")
    if found is None:
        requirements.skip_unbuilt("no node")
    return found


@pytest.fixture
def explorer(page: Browser, folder: Path) -> Explorer:
    """The page in a window of usual size."""
    page.resize(1280)
    return Explorer(page, folder)
