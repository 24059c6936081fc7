"""Emulated networks without root: in a user namespace, where the system lets everybody make one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runner.unprivileged import interpreter, longfat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="emulated networks need Linux")

STUDY = """
title = "Two kernels and a path"
worlds = ["netns"]
repeats = 1
path = { rate = "20Mbit/s", delay = "10ms", queue = "50pkt" }
workload = { kind = "file", size = "100kB" }
protocols = [
    { name = "reno", kind = "tcp", congestion = "reno" },
    { name = "gbn", kind = "go-back-n", window = 8 },
]
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write to and reach: pytest's own are its user's alone."""
    if interpreter() is None:
        pytest.skip("no Python with longfat that another user may start")
    made = Path(tempfile.mkdtemp(prefix="longfat-test-"))
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def allowed(folder: Path) -> Path:
    """The folder, where an ordinary user may emulate."""
    probes = {probe["name"]: probe for probe in json.loads(longfat(folder, "doctor", "--json").stdout)}
    for name in ("user namespaces", "network namespaces", "TUN devices"):
        if not probes[name]["ok"]:
            pytest.skip(f"{name}: {probes[name]['detail']}; {probes[name]['remedy']}")
    return folder


def test_a_study_runs_between_kernels(allowed: Path) -> None:
    (allowed / "kernels.toml").write_text(STUDY, encoding="utf-8")
    done = longfat(allowed, "run", "kernels.toml", "--json")
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [(cell["protocol"], cell["n"]) for cell in cells] == [("reno", 1), ("gbn", 1)], done.stdout
    # Round trips of 20 ms, however the hosts came about.
    assert all(cell["metrics"]["rtt_min_s"]["mean"] >= 0.02 for cell in cells[:1])


def test_a_controller_that_needs_root_is_not_available(allowed: Path) -> None:
    from longfat.kernel.controllers import listed

    if "vegas" in listed():
        pytest.skip("this kernel has Vegas of its own")
    study = STUDY.replace(
        '"reno", kind = "tcp", congestion = "reno"', '"vegas", kind = "tcp", congestion = "vegas"'
    )
    (allowed / "vegas.toml").write_text(study, encoding="utf-8")
    done = longfat(allowed, "run", "vegas.toml", "--json")
    vegas, gbn = json.loads(done.stdout)["cells"]
    (error,) = vegas["failures"]
    assert "CAP_BPF" in error
    assert "run it as root" in error
    assert (vegas["n"], gbn["n"]) == (0, 1)


def test_a_shell_has_its_path(allowed: Path) -> None:
    done = longfat(allowed, "shell", "--delay", "20ms", "--json", "--", "cat", "/proc/net/dev")
    assert done.returncode == 0, done.stderr
    assert "longfat0" in done.stdout


def test_what_closes_user_namespaces_is_named(tmp_path: Path) -> None:
    # A limit of zero that holds inside one user namespace alone; the rest of the machine keeps its own.
    shut = (
        'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    )
    shell = ["-m", "longfat", "shell", "--delay", "1ms", "--", "true"]
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("unshare and setpriv are missing (util-linux)")
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespace can be made")
    command = ["unshare", "-Ur", "sh", "-c", shut, "sh", sys.executable, *shell]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line == (
        "longfat: may not make a user namespace: user.max_user_namespaces is 0: run as root, "
        "or let everybody: sysctl user.max_user_namespaces=15000"
    )
