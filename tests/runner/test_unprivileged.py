"""Emulated networks without root, in user namespaces; skipped where users may not create them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tomli_w
from tests import requirements
from tests.conftest import Data, refuse_without
from tests.runner.unprivileged import longfat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="emulated networks need Linux")

GBN = {"name": "gbn", "kind": "go-back-n", "window": 8}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all users may access, unlike pytest's folders."""
    created = Path(tempfile.mkdtemp(prefix="longfat-test-"))
    created.chmod(0o777)
    yield created
    shutil.rmtree(created)


@pytest.fixture
def allowed(folder: Path) -> Path:
    """The folder, if ordinary users may emulate networks."""
    probes = json.loads(longfat(folder, "doctor", "--json").stdout)
    refuse_without(probes, "user namespaces", "network namespaces", "TUN devices")
    return folder


@pytest.mark.slow
def test_a_study_runs_between_kernels(allowed: Path, between_kernels: Callable[..., Data]) -> None:
    (allowed / "kernels.toml").write_text(tomli_w.dumps(between_kernels("100kB", GBN)), encoding="utf-8")
    done = longfat(allowed, "run", "kernels.toml", "--json")
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [(cell["protocol"], cell["n"]) for cell in cells] == [("reno", 1), ("gbn", 1)], done.stdout
    # The RTT is 20 ms, as with root.
    assert all(cell["metrics"]["rtt_min_s"]["mean"] >= 0.02 for cell in cells[:1])


@pytest.mark.slow
def test_a_controller_that_needs_root_is_not_available(
    allowed: Path, between_kernels: Callable[..., Data]
) -> None:
    from longfat.kernel.controllers import listed

    if "vegas" in listed():
        return  # the kernel's controller is available
    study = between_kernels("100kB", GBN)
    study["protocols"][0]["congestion"] = "vegas"
    (allowed / "vegas.toml").write_text(tomli_w.dumps(study), encoding="utf-8")
    refused = longfat(allowed, "run", "vegas.toml", "--json")
    assert refused.returncode == 1
    assert refused.stderr.startswith("longfat: world netns: reno: vegas: ")
    assert "CAP_BPF" in refused.stderr
    done = longfat(allowed, "run", "vegas.toml", "--json", "--force")
    vegas, gbn = json.loads(done.stdout)["cells"]
    (error,) = vegas["failures"]
    assert "CAP_BPF" in error
    assert "run it as root" in error
    assert (vegas["n"], gbn["n"]) == (0, 1)


def test_a_shell_runs_behind_its_path(allowed: Path) -> None:
    done = longfat(allowed, "shell", "--delay", "20ms", "--json", "--", "cat", "/proc/net/dev")
    assert done.returncode == 0, done.stderr
    assert "longfat0" in done.stdout


def test_the_limit_of_user_namespaces_is_named(tmp_path: Path) -> None:
    # The limit of zero applies inside one user namespace only; the rest of the machine is unaffected.
    shut = (
        'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    )
    shell = ["-P", "-m", "longfat", "shell", "--delay", "1ms", "--", "true"]
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        requirements.skip("programs", "unshare and setpriv are missing (util-linux)")
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode != 0:
        requirements.skip("users", "user namespaces cannot be created")
    command = ["unshare", "-Ur", "sh", "-c", shut, "sh", sys.executable, *shell]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line == (
        "longfat: may not create a user namespace: user.max_user_namespaces is 0: run as root, "
        "or allow it: sysctl user.max_user_namespaces=15000"
    )
