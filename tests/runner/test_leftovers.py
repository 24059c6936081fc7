"""`longfat run` between kernels and `longfat shell` leave nothing behind when they are killed.

LONGFAT_KILLS sets the number of kills.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import command
from tests.effort import count
from tests.waiting import eventually

from longfat.kernel.controllers import available

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.xdist_group("machine")]

KILLS = count("LONGFAT_KILLS", 12)
MARK = "LONGFAT_TEST_LEFTOVERS"
STUDY = """
title = "To be killed"
worlds = ["netns"]
repeats = 50
path = {{ rate = "5Mbit/s", delay = "5ms", queue = "50pkt" }}
workload = {{ kind = "bulk", duration = "1s" }}
protocols = [{protocols}]
"""
RENO = '{ name = "reno", kind = "tcp", congestion = "reno" }'
# No other test uses these thresholds.
VEGAS = '{ name = "vegas", kind = "tcp", congestion = { kind = "vegas", alpha = 7, beta = 11 } }'
SETTINGS = (
    "net/ipv4/ip_forward",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/ping_group_range",
    "net/ipv6/conf/all/disable_ipv6",
    "net/ipv6/conf/default/disable_ipv6",
)


def marked(mark: str) -> dict[int, str]:
    """Returns the network namespaces of processes with this mark in their environment."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = str((process / "ns" / "net").readlink())
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


def surroundings() -> dict[str, object]:
    """Returns the state that emulations must not change: devices, routes, settings, mounts."""
    devices = Path("/proc/net/dev").read_text().splitlines()[2:]
    read = {
        name: Path("/proc/sys", name).read_text() for name in SETTINGS if Path("/proc/sys", name).exists()
    }
    return {
        "devices": sorted(line.split(":")[0].strip() for line in devices),
        "routes": Path("/proc/net/route").read_text(),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        **read,
    }


def remaining(search: Callable[[], object]) -> object:
    """Waits until a search finds nothing; returns what it still finds after the time limit."""
    eventually(lambda: not search())
    return search()


def held_links(mark: str) -> list[int]:
    """Returns the numbers of BPF links that marked processes hold."""
    links = []
    for process in marked(mark):
        try:
            for info in Path(f"/proc/{process}/fdinfo").iterdir():
                lines = dict(line.split(":\t", 1) for line in info.read_text().splitlines() if ":\t" in line)
                if lines.get("link_type") == "struct_ops":
                    links.append(int(lines["link_id"]))
        except OSError:  # it has ended
            continue
    return links


@pytest.mark.slow
def test_kills_at_random_times_leave_nothing(tmp_path: Path) -> None:
    from tests.kernel.bpf_objects import link_exists

    vegas = available("vegas", source="bpf").ok
    (tmp_path / "killed.toml").write_text(
        STUDY.format(protocols=", ".join([RENO, VEGAS] if vegas else [RENO])), encoding="utf-8"
    )
    shell = [
        "shell",
        "--delay",
        "5ms",
        "--server",
        "sleep 600",
        "--",
        "sh",
        "-c",
        "(setsid sleep 600 &); sleep 600",
    ]
    kinds = [["run", "killed.toml", "--fresh"], shell]
    before = surroundings()
    mark, draw, seen, links = str(os.getpid()), random.Random(11), 0, set[int]()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for number in range(KILLS):
        process = subprocess.Popen(
            command(*kinds[number % len(kinds)]),
            cwd=tmp_path,
            env={**os.environ, MARK: mark, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # The kills range from before the setup of hosts to the middle of trials.
        time.sleep(draw.uniform(0.0, 4.0))
        found = marked(mark)
        seen += len(set(found.values())) > 1
        links.update(held_links(mark))
        assert process.poll() is None, "it exited before the kill"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not remaining(lambda: marked(mark)), f"after {number + 1} kills"
        assert not remaining(lambda: [link for link in links if link_exists(link)])
        assert surroundings() == before
    assert list(temporary.iterdir()) == []
    print(f"{KILLS} kills, {seen} with running hosts; {len(links)} controllers in the kernel")
