"""A controller is removed when its process ends for any reason."""

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
from tests.effort import cases
from tests.kernel.bpf_objects import link_exists, map_exists
from tests.waiting import eventually, wait_until

from longfat.kernel.controllers import HolderError, ensure, listed
from longfat.kernel.holder import Holder

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.usefixtures("_bpf"), pytest.mark.xdist_group("machine")]


def start(mode: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.kernel.keeper", "vegas", mode], cwd=ROOT, stdout=subprocess.PIPE
    )


def reported(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    content: dict[str, Any] = json.loads(process.stdout.readline())
    return content


def gone(link: int, controller: int) -> bool:
    """Whether the kernel has freed both; it frees maps shortly after their last user."""
    return eventually(lambda: not link_exists(link) and not map_exists(controller))


def test_a_controller_is_registered_while_held() -> None:
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


def test_concurrent_controllers_have_different_names() -> None:
    with ensure("reno", source="bpf") as one, ensure("reno", source="bpf") as other:
        assert one.kernel_name != other.kernel_name
        assert {one.kernel_name, other.kernel_name} <= set(listed())
        assert all(len(name) <= 15 for name in (one.kernel_name, other.kernel_name))
        assert one.holder is not None
        one.holder.close()
        # The other controller stays registered.
        assert other.kernel_name in listed()
        other.verify()


def test_verify_raises_after_the_holder_is_killed() -> None:
    with ensure("vegas", source="bpf") as controller:
        holder = controller.holder
        assert holder is not None
        os.kill(holder.pid, signal.SIGKILL)
        assert gone(holder.link, holder.map)
        with pytest.raises(HolderError, match=f"{controller.kernel_name} is no longer in the kernel"):
            controller.verify()


def test_a_killed_process_removes_its_controller() -> None:
    process = start("plain")
    kept = reported(process)
    assert kept["name"] in listed()
    process.kill()
    process.communicate()
    assert gone(kept["link"], kept["map"])


def test_a_surviving_child_does_not_keep_the_controller() -> None:
    process = start("sibling")
    kept = reported(process)
    try:
        process.kill()
        process.wait()
        assert gone(kept["link"], kept["map"])
    finally:
        os.kill(kept["sibling"], signal.SIGKILL)
        process.communicate()


def test_the_controller_outlives_the_thread_that_registered_it() -> None:
    process = start("thread")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    report = json.loads(output)
    assert report["name"] in report["listed"]


def test_a_process_killed_at_random_times_leaves_nothing() -> None:
    draw = random.Random(7)
    began = time.monotonic()
    reference = start("plain")
    kept = [reported(reference)]
    span = time.monotonic() - began
    reference.kill()
    reference.communicate()
    for number in range(cases(40)):
        process = start("plain")
        if number % 2:
            # The kill occurs before or during the registration.
            time.sleep(draw.uniform(0.5, 1.0) * span)
        else:
            kept.append(reported(process))
            time.sleep(draw.uniform(0.0, 0.05))
        process.kill()
        output, _ = process.communicate()
        with contextlib.suppress(ValueError):
            kept.append(json.loads(output))
    assert len(kept) >= 1 + cases(40) // 2
    for each in kept:
        assert gone(each["link"], each["map"])
    wait_until(lambda: not orphans())


def orphans() -> list[int]:
    """Returns holders without a parent."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if (entry / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/holder"):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == 1:
                    found.append(int(entry.name))
    return found


def test_the_holder_refuses_unknown_parameters() -> None:
    from longfat.kernel import build

    with pytest.raises(HolderError, match="no parameter delta"), Holder(build.built(), "vegas", {"delta": 1}):
        pass


def test_clean_stops_a_frozen_holder() -> None:
    process = start("plain")
    kept = reported(process)
    # A container manager freezes processes like this.
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
        assert f"stopped process {kept['pid']}: the holder of a congestion controller" in done.stdout, done
        assert gone(kept["link"], kept["map"])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(kept["pid"], signal.SIGKILL)
