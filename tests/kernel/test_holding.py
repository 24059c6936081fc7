"""A controller goes with the process that asked for it, however that ends, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.kernel.bpf_objects import link_exists, map_exists

from longfat.kernel.controllers import HolderError, ensure, listed
from longfat.kernel.holder import Holder

ROOT = Path(__file__).parents[2]
PATIENCE_S = 10.0

pytestmark = pytest.mark.usefixtures("_bpf")


def start(mode: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.kernel.keeper", "vegas", mode], cwd=ROOT, stdout=subprocess.PIPE
    )


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    content: dict[str, Any] = json.loads(process.stdout.readline())
    return content


def gone(link: int, controller: int) -> bool:
    """Whether the kernel has given up both; it frees maps a moment after their last user."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if not link_exists(link) and not map_exists(controller):
            return True
        time.sleep(0.01)
    return False


def test_registered_while_held() -> None:
    with ensure("vegas", source="bpf") as controller:
        holder = controller.holder
        assert holder is not None
        assert controller.source == "bpf"
        assert controller.kernel_name.startswith("lf_vegas")
        assert controller.kernel_name in listed()
        assert link_exists(holder.link)
        assert map_exists(holder.map)
        controller.verify()
    assert gone(holder.link, holder.map)


def test_several_at_once_have_names_of_their_own() -> None:
    with ensure("reno", source="bpf") as one, ensure("reno", source="bpf") as other:
        assert one.kernel_name != other.kernel_name
        assert {one.kernel_name, other.kernel_name} <= set(listed())
        assert all(len(name) <= 15 for name in (one.kernel_name, other.kernel_name))
        assert one.holder is not None
        one.holder.close()
        # Each goes on its own.
        assert other.kernel_name in listed()
        other.verify()


def test_a_killed_holder_takes_it_along_and_is_noticed() -> None:
    with ensure("vegas", source="bpf") as controller:
        holder = controller.holder
        assert holder is not None
        os.kill(holder.pid, signal.SIGKILL)
        assert gone(holder.link, holder.map)
        with pytest.raises(HolderError, match=f"{controller.kernel_name} is no longer in the kernel"):
            controller.verify()


def test_a_killed_process_takes_it_along() -> None:
    process = start("plain")
    kept = told(process)
    assert kept["name"] in listed()
    process.kill()
    process.communicate()
    assert gone(kept["link"], kept["map"])


def test_a_child_that_lives_on_does_not_keep_it() -> None:
    process = start("sibling")
    kept = told(process)
    try:
        process.kill()
        process.wait()
        assert gone(kept["link"], kept["map"])
    finally:
        os.kill(kept["sibling"], signal.SIGKILL)
        process.communicate()


def test_the_thread_that_asked_may_end() -> None:
    process = start("thread")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    said = json.loads(output)
    assert said["name"] in said["listed"]


def test_killed_at_random_moments_nothing_is_left() -> None:
    draw = random.Random(7)
    began = time.monotonic()
    reference = start("plain")
    kept = [told(reference)]
    span = time.monotonic() - began
    reference.kill()
    reference.communicate()
    for number in range(10):
        process = start("plain")
        if number % 2:
            # While the kernel takes it, or before.
            time.sleep(draw.uniform(0.5, 1.0) * span)
        else:
            kept.append(told(process))
            time.sleep(draw.uniform(0.0, 0.05))
        process.kill()
        output, _ = process.communicate()
        with contextlib.suppress(ValueError):
            kept.append(json.loads(output))
    assert len(kept) >= 6
    for each in kept:
        assert gone(each["link"], each["map"])
    end = time.monotonic() + PATIENCE_S
    while orphans() and time.monotonic() < end:
        time.sleep(0.01)
    assert not orphans()


def orphans() -> list[int]:
    """Holders whose parent is gone."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if (entry / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/holder"):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == 1:
                    found.append(int(entry.name))
    return found


def test_unknown_parameters_are_refused_by_the_holder_too() -> None:
    from longfat.kernel import build

    with pytest.raises(HolderError, match="no parameter delta"), Holder(build.built(), "vegas", {"delta": 1}):
        pass


def test_clean_ends_a_holder_that_could_not_end_by_itself() -> None:
    process = start("plain")
    kept = told(process)
    # As a container's manager freezes it.
    os.kill(kept["pid"], signal.SIGSTOP)
    try:
        process.kill()
        process.communicate()
        assert link_exists(kept["link"])
        done = subprocess.run(
            [sys.executable, "-P", "-m", "longfat", "clean"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert f"ended process {kept['pid']}: the holder of a congestion controller" in done.stdout, done
        assert gone(kept["link"], kept["map"])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(kept["pid"], signal.SIGKILL)
