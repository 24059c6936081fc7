"""Commands never import from the current folder: they often run as root in folders of other users."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Cli, Data

MODULES = ("json", "subprocess", "socket", "random", "typing")
MARK = "executed.txt"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """The current folder of commands, with modules that leave a mark when imported."""
    text = f"import os\nos.close(os.open({str(tmp_path / MARK)!r}, os.O_CREAT | os.O_WRONLY))\n"
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("world", "packages"), [("relay", ()), ("netns", ("emulated",))])
def test_trial_processes_ignore_modules_in_the_current_folder(
    world: str,
    packages: tuple[str, ...],
    hostile: Path,
    cli: Cli,
    write: Callable[[Data], Path],
    data: Data,
    request: pytest.FixtureRequest,
) -> None:
    for fixture in packages:
        request.getfixturevalue(fixture)
    study = data | {
        "worlds": [world],
        "repeats": 1,
        "sweep": {},
        "claims": [],
        "protocols": data["protocols"][:1],
    }
    cli("run", write(study), "--force")
    assert not (hostile / MARK).exists()


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
def test_capacity_measurement_ignores_modules_in_the_current_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longfat.worlds.capacity import machine_capacity

    monkeypatch.chdir(hostile)
    monkeypatch.setenv("XDG_CACHE_HOME", str(hostile / "cache"))
    assert machine_capacity() is not None
    assert not (hostile / MARK).exists()


def test_python_m_longfat_ignores_modules_in_the_current_folder(hostile: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longfat", "list"], cwd=hostile, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (hostile / MARK).exists()
