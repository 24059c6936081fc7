"""Connections of `longfat.kernel.mptcp` over the kernel's MPTCP in network namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from tests import requirements
from tests.conftest import refuse_without

from longfat import _native, mptcp

PATIENCE_S = 60


def _link(start: str, end: str, delay: str) -> dict[str, str]:
    return {"from": start, "to": end, "rate": "20Mbit/s", "delay": delay}


NETWORK = {
    "topology": {
        "kind": "free",
        "hosts": ["a", "b"],
        "routers": ["x", "y", "z"],
        "links": [
            *(_link("a", router, delay) for router, delay in (("x", "30ms"), ("y", "5ms"), ("z", "20ms"))),
            *(_link(router, "b", "1ms") for router in "xyz"),
        ],
    },
    "protocol": {"kind": "tcp"},
    "workload": {"kind": "file", "size": "1kB"},
    "seed": 1,
}
"""Three paths; the second has the smallest delay."""

SERVER = """
import socket, threading
from longfat import mptcp
def read(one):
    # Confirms each piece, of as many bytes as its first 8 say.
    with one, one.makefile("rb") as stream:
        while head := stream.read(8):
            left = int.from_bytes(head)
            while left > 0:
                left -= len(stream.read(min(left, 65536)))
            one.sendall(b".")
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(("0.0.0.0", 7000))
listener.listen()
print(flush=True)
while True:
    threading.Thread(target=read, args=(listener.accept()[0],), daemon=True).start()
"""

CLIENT = """
import json, socket, sys, time, warnings
from longfat import mptcp
def send(size, known=True, **options):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        connection = mptcp.connect(("HOST", 7000), size=size if known else None, **options)
    with connection:
        end = time.monotonic() + 30
        used = []
        # A daemon may be late: a long transfer lasts until it has joined the other paths.
        while not used or size > 1_000_000 and len(used) < 3 and time.monotonic() < end:
            connection.sendall(size.to_bytes(8) + bytes(size))
            assert connection.recv(1) == b"."
            used = sorted(one.local for one in mptcp.subflows(connection) if one.bytes_sent > 0)
            size = min(size, 1_000_001)
        print(json.dumps({"used": used, "warned": [str(one.message) for one in warned]}), flush=True)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
"""

TESTBED = """
import json, os, signal, sys, time
from longfat import _native
bed = _native.Testbed(sys.argv[1])
hosts = {host["name"]: host["address"] for host in json.loads(bed.hosts())}
def start(host, *command, out=1):
    return bed.run(host, json.dumps({"command": list(command)}), (0, out, 2))
def python(host, text, out=1):
    return start(host, sys.executable, "-P", "-c", text.replace("HOST", hosts["b"]), out=out)
def started(run, *words):
    # Returns a command that has printed its first line: its process, and its output.
    reading, writing = os.pipe()
    process = run(*words, out=writing)
    os.close(writing)
    output = os.fdopen(reading)
    print(output.readline(), end="", flush=True)
    return process, output
def wait(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
start("b", "ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")
server, _ = started(python, "b", sys.argv[2])
"""


@pytest.fixture(scope="module")
def _built() -> None:
    """Skips tests if no network with MPTCP can be built."""
    if _native.mptcp_support() not in {"user", "kernel"}:
        requirements.skip("mptcp", "the kernel has no MPTCP with a path manager in user space")
    refuse_without(json.loads(_native.doctor()), "network namespaces", "TUN devices")


def _reported(script: str) -> list[dict[str, object]]:
    """Returns the JSON objects that the client prints, one per line."""
    line = [
        sys.executable,
        "-P",
        "-c",
        TESTBED + textwrap.dedent(script),
        json.dumps(NETWORK),
        SERVER,
        CLIENT,
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(one) for one in done.stdout.splitlines() if one.startswith("{")]


@pytest.mark.usefixtures("_built")
@pytest.mark.slow
def test_a_daemon_decides_by_size() -> None:
    reports = _reported("""
        command = [sys.executable, "-P", "-m", "longfat", "mptcp", "--set-sysctl", "--json"]
        daemon, events = started(start, "a", *command)
        text = sys.argv[3] + "send(5_000_000); send(50_000); send(50_000, known=False)"
        assert wait(python("a", text)) == 0
        os.kill(daemon, signal.SIGTERM)
        assert wait(daemon) == 0
        print(events.read())
        assert wait(start("a", "cat", "/proc/sys/net/mptcp/pm_type")) == 0
        bed.close()
    """)
    sent = [one for one in reports if "used" in one]
    assert [one["warned"] for one in sent] == [[], [], []]
    assert [len(one["used"]) for one in sent] == [3, 1, 1]  # type: ignore[arg-type]
    # The address of the second path, which has the smallest delay.
    assert sent[1]["used"] == ["10.77.4.1"]
    events = [one["event"] for one in reports if "event" in one]
    assert events[0] == "ready"
    assert events.count("opened") == 3
    assert events.count("joined") == 2


@pytest.mark.usefixtures("_built")
def test_without_a_daemon_the_process_manages_its_own_paths_or_warns() -> None:
    reports = _reported("""
        assert wait(python("a", sys.argv[3] + "send(50_000)")) == 0
        assert wait(start("a", "sysctl", "-q", "net.mptcp.pm_type=1")) == 0
        assert wait(python("a", sys.argv[3] + "send(5_000_000, policy='fsfs'); send(50_000)")) == 0
        assert wait(start("a", "sysctl", "-q", "net.mptcp.enabled=0")) == 0
        text = sys.argv[3].replace("used = sorted", "used = ['none'] or sorted")
        assert wait(python("a", text + "send(1000)")) == 0
        bed.close()
    """)
    [kernel, long, short, plain] = reports
    assert "longfat mptcp --set-sysctl" in str(kernel["warned"])
    assert (len(long["used"]), long["warned"]) == (3, [])  # type: ignore[arg-type]
    assert (short["used"], short["warned"]) == (["10.77.4.1"], [])
    assert "net.mptcp.enabled=1" in str(plain["warned"])


def test_a_size_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="size: -1 is out of range"):
        mptcp.connect(("127.0.0.1", 1), size=-1)


@pytest.mark.parametrize("policy", ["mmptcp", '{ kind = "foresight", tail = 3 }'])
def test_refuses_policies_that_linux_cannot_apply(policy: str) -> None:
    line = [sys.executable, "-P", "-m", "longfat", "mptcp", "--policy", policy]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("longfat: policy."), done.stderr
    assert "Linux" in done.stderr


@pytest.mark.usefixtures("_built")
def test_a_daemon_of_root_does_not_serve_other_users() -> None:
    if os.geteuid() != 0:
        requirements.skip("users", "only root becomes another user")
    reports = _reported("""
        command = [sys.executable, "-P", "-m", "longfat", "mptcp", "--set-sysctl", "--json"]
        daemon, events = started(start, "a", *command)
        # What the child imports is imported while it may still read it.
        first = "import os, encodings.idna, longfat._native\\n"
        then = "os.setresuid(65534, 65534, 65534); send(50_000)"
        assert wait(python("a", first + sys.argv[3] + then)) == 0
        os.kill(daemon, signal.SIGTERM)
        assert wait(daemon) == 0
        print(events.read())
        bed.close()
    """)
    [sent] = [one for one in reports if "used" in one]
    assert "the path manager here serves root only" in str(sent["warned"])
    # The connection succeeds, and the daemon manages it without knowing its size.
    [opened] = [one for one in reports if one.get("event") == "opened"]
    assert opened["size"] is None


@pytest.mark.usefixtures("_built")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_daemon_within_two_seconds(number: str) -> None:
    [report] = _reported(f"""
        command = [sys.executable, "-P", "-m", "longfat", "mptcp", "--set-sysctl"]
        daemon, events = started(start, "a", *command)
        sent = time.monotonic()
        os.kill(daemon, signal.{number})
        assert wait(daemon) == 0
        elapsed = time.monotonic() - sent
        reading, writing = os.pipe()
        assert wait(start("a", "cat", "/proc/sys/net/mptcp/pm_type", out=writing)) == 0
        print(json.dumps({{"elapsed": elapsed, "kind": os.read(reading, 9).decode()}}))
        bed.close()
    """)
    assert report["kind"] == "0\n"
    # It looks for signals several times a second; a busy machine may add.
    assert isinstance(report["elapsed"], float)
    assert report["elapsed"] < 5
