"""`longfat doctor` and `longfat clean`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.conftest import Refused, Start
from tests.conftest import Cli
from tests.waiting import PATIENCE_S, wait_until

from longfat import _native

# Has the name of an emulation's first process (`prctl(2)`, PR_SET_NAME is 15), but its parent is no emulator.
LEFT = """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"longfat-init", 0, 0, 0)
print(flush=True)
time.sleep(600)
"""

pytestmark = pytest.mark.xdist_group("machine")
"""The tests look for leftovers on the whole machine, and remove them."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="emulated networks need Linux")


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because they kill leftovers of other processes."""
    return cli_process


@pytest.fixture
def left() -> subprocess.Popen[bytes]:
    """A leftover process of an emulation."""
    process = subprocess.Popen([sys.executable, "-P", "-c", LEFT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@linux
def test_doctor_shows_each_probe_with_its_detail(cli: Cli) -> None:
    probes = {probe["name"]: probe for probe in json.loads(cli("doctor", "--json").stdout)}
    assert {"kernel", "network namespaces", "TUN devices", "timers", "congestion control"} <= set(probes)
    assert re.match(r"default: \S+( \(version 1\))?; available: ", probes["congestion control"]["detail"])
    for probe in probes.values():
        assert set(probe) == {"key", "name", "ok", "busy", "detail", "remedy"}
        assert probe["detail"]
        assert probe["ok"] == (probe["remedy"] is None)
        assert not (probe["ok"] and probe["busy"])
    lines = cli("doctor").stdout.splitlines()
    kernel = probes["kernel"]
    assert lines[0].split() == ["ok" if kernel["ok"] else "missing", "kernel", *kernel["detail"].split()]
    shown = [match[1] for line in lines if (match := re.match(r"(?:ok|missing|busy) +(.+?)  ", line))]
    assert shown == list(probes)
    good = sum(line.startswith("ok ") for line in lines)
    assert f"{good} of {len(probes)} ok" in lines[-2:]


@linux
def test_doctor_checks_what_is_required_only(cli: Cli) -> None:
    done = cli("doctor", "--require", "kernel, userns", "--json", ok=False)
    probes = json.loads(done.stdout)
    assert [probe["key"] for probe in probes] == ["kernel", "userns"]
    assert done.returncode == (not all(probe["ok"] for probe in probes))
    assert cli("doctor", "--require", "kernel").stdout == "ok: kernel\n"


def test_doctor_fails_with_one_line_if_a_requirement_is_missing(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = [
        {
            "key": "netns",
            "name": "network namespaces",
            "ok": True,
            "busy": False,
            "detail": "",
            "remedy": None,
        },
        {
            "key": "tun",
            "name": "TUN",
            "ok": False,
            "busy": False,
            "detail": "no node",
            "remedy": "modprobe tun",
        },
        {"key": "emulation", "name": "", "ok": False, "busy": True, "detail": "late", "remedy": "wait"},
    ]
    monkeypatch.setattr(_native, "doctor", lambda only: json.dumps(probes))
    busy = "emulation not met, because this machine is busy: late: wait"
    refused(
        ["doctor", "--require", "netns,tun,emulation"],
        1,
        [f"longfat: doctor: tun missing: no node: modprobe tun; {busy}"],
    )


def test_doctor_refuses_unknown_requirements(refused: Refused) -> None:
    refused(["doctor", "--require", "netns,tap"], 2, ['--require: "tap" is not known: allowed: kernel, '])


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_doctor_ends_within_two_seconds_of_a_signal(start: Start, number: signal.Signals) -> None:
    running = start("doctor")
    # Any time is allowed; this one is inside the checks on most machines.
    time.sleep(0.5)
    sent = time.monotonic()
    running.process.send_signal(number)
    code = running.process.wait(PATIENCE_S)
    assert time.monotonic() - sent < 2
    assert code in (-number, 128 + number)


@linux
def test_doctor_names_leftovers_and_clean_removes_them(cli: Cli, left: subprocess.Popen[bytes]) -> None:
    try:
        lines = [line.strip() for line in cli("doctor").stdout.splitlines()]
        found = next(number for number, line in enumerate(lines) if " leftovers " in line)
        assert lines[found].startswith("missing")
        assert str(left.pid) in lines[found]
        assert lines[found + 1] == "\N{RIGHTWARDS ARROW} longfat clean"
        assert (
            f"stopped process {left.pid}: the first process of an emulation's commands" in cli("clean").stdout
        )
        assert left.wait(PATIENCE_S) == -signal.SIGKILL
        assert f"process {left.pid}" not in cli("clean").stdout
    finally:
        left.kill()
        left.communicate()


@linux
def test_clean_reports_that_nothing_was_left(cli: Cli) -> None:
    # A process of another test that has just been killed may still be ending.
    wait_until(lambda: cli("clean").stdout == "No leftovers found\n")


def test_a_process_that_cannot_be_killed_is_a_failure(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"ended": [], "left": [{"process": 123456789, "what": "a first process"}]}
    monkeypatch.setattr(_native, "clean", lambda: json.dumps(found))
    refused(["clean"], 1, ["no permission to stop process 123456789 (a first process): run longfat clean as"])
