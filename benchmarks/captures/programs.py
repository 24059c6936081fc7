"""Programs between Linux kernels, captured by tcpdump."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PORT = 8000
_READING = f"""
import socket, sys, time
server = socket.create_server(("0.0.0.0", {PORT}))
connection, _ = server.accept()
got, pause = 0, float(sys.argv[2])
while data := connection.recv(65536):
    got += len(data)
    if got > int(sys.argv[1]) and pause:
        time.sleep(pause)
        pause = 0
"""
_SENDING = f"""
import socket, sys
connection = socket.create_connection(("receiver", {PORT}))
if sys.argv[2] != "0":
    connection.setsockopt(socket.SOL_SOCKET, 47, int(sys.argv[2]))  # SO_MAX_PACING_RATE, in B/s
connection.sendall(bytes(int(sys.argv[1])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""
_ANSWERING = f"""
import socket, sys
server = socket.create_server(("0.0.0.0", {PORT}))
connection, _ = server.accept()
size = int(sys.argv[1])
while True:
    wanted = size
    while wanted and (data := connection.recv(wanted)):
        wanted -= len(data)
    if wanted:
        break
    connection.sendall(b"a")
"""
_REQUESTING = f"""
import socket, sys
size, count, writes = map(int, sys.argv[1:4])
connection = socket.create_connection(("receiver", {PORT}))
for _ in range(count):
    for _ in range(writes):
        connection.sendall(bytes(size // writes))
    connection.recv(1)
connection.close()
"""


@dataclass(frozen=True)
class Program:
    """A client and a server in Python with their arguments, and settings of the kernels."""

    client: str
    client_arguments: tuple[str, ...]
    server: str
    server_arguments: tuple[str, ...]
    sysctls: tuple[str, ...] = ()


def stalling(draw: random.Random, rate_mbps: float) -> Program:
    """Returns a receiver that stops reading for longer than the data takes without it."""
    before, pause = draw.randint(1, 4), draw.uniform(4, 8)
    pause = max(pause, 1.5 * before * 4 * 8 / rate_mbps)
    return Program(
        _SENDING,
        (str(before * 4_000_000), "0"),
        _READING,
        (str(before * 1_000_000), f"{pause:.1f}"),
        ("net.ipv4.tcp_rmem=4096 131072 1000000",),
    )


def paced(rate_mbps: float) -> Program:
    """Returns a sender with a maximum pacing rate, for 8 s."""
    rate = int(rate_mbps * 1e6 / 8)
    return Program(_SENDING, (str(rate * 8), str(rate)), _READING, ("0", "0"))


def small_writes(draw: random.Random) -> Program:
    """Returns requests in several small writes, each answered."""
    writes = draw.randint(2, 4)
    size = writes * draw.randint(50, 300)
    return Program(_REQUESTING, (str(size), "100", str(writes)), _ANSWERING, (str(size),))


def capture(program: Program, path: Mapping[str, Any], file: Path) -> None:
    """Runs a program over a path, and captures at its client."""
    with tempfile.TemporaryDirectory() as folder:
        server, client = Path(folder) / "server.py", Path(folder) / "client.py"
        server.write_text(program.server)
        client.write_text(program.client)
        log = Path(folder) / "tcpdump.log"
        line = (
            f"tcpdump -U -i any -s 128 -w {file} tcp 2>{log} & "
            f"while ! grep -q listening {log}; do sleep 0.1; done; "
            f"{sys.executable} {client} {' '.join(program.client_arguments)}; sleep 0.5; kill %1; wait"
        )
        words = [sys.executable, "-m", "longfat", "shell", "--congestion", "cubic"]
        words += [word for key, value in path.items() for word in (f"--{key}", value)]
        words += [word for sysctl in program.sysctls for word in ("--sysctl", sysctl)]
        words += ["--wait-port", str(PORT)]
        words += ["--server", f"{sys.executable} {server} {' '.join(program.server_arguments)}"]
        subprocess.run([*words, "--", "bash", "-mc", line], check=True, capture_output=True, timeout=120)
