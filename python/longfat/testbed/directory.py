"""The running testbeds, and connections to them.

A testbed listens on a Unix socket with an abstract name (`unix(7)`). The name exists as long as the socket,
so a killed testbed leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.system.local_sockets import peer

_PREFIX = "longfat-net/"
LONGEST = 1 << 20
"""Longest message in bytes: a command and its environment."""
# Read before entering a user namespace, where the number changes: names use that of the user outside.
_USER = os.getuid()


@dataclass(frozen=True)
class Running:
    """A running testbed."""

    name: str
    pid: int
    """ID of its process."""
    study: str
    hosts: tuple[str, ...]


def clean_name(study: str) -> str:
    """Returns the testbed name for a study.

    >>> clean_name("congestion/delay"), clean_name("my study")
    ('congestion-delay', 'my-study')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", study).strip("-") or "study"


def listen(wanted: str | None, study: str) -> tuple[socket.socket, str]:
    """Returns a socket with an unused name. Raises ValueError if the wanted name is taken."""
    if wanted is not None and wanted != clean_name(wanted):
        raise ValueError(f'--name: "{wanted}" is not a valid name: use letters, digits, ".", "_" and "-"')
    name, number = wanted or clean_name(study), 1
    while True:
        made = _socket()
        try:
            made.bind(_address(name))
        except OSError:
            made.close()
            if wanted is not None or number > 1000:
                raise ValueError(f'--name: a testbed "{name}" is running already') from None
            number += 1
            name = f"{clean_name(study)}-{number}"
            continue
        made.listen(64)
        return made, name


def names() -> list[str]:
    """Returns the names of the user's running testbeds."""
    prefix = f" @{_PREFIX}{_USER}/"
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return sorted({line.partition(prefix)[2] for line in lines if prefix in line})


def connect(name: str) -> socket.socket:
    """Returns a connection to a testbed of this user. Raises ValueError for an unknown name."""
    made = _socket()
    try:
        made.connect(_address(name))
    except OSError:
        made.close()
        running = names()
        there = f"; running: {', '.join(running)}" if running else "; none is running"
        raise ValueError(f'no testbed "{name}"{there} (start one with longfat net STUDY)') from None
    if peer(made)[1] != os.getuid():
        made.close()
        raise ValueError(f'the testbed "{name}" belongs to another user')
    return made


def find(place: str) -> tuple[str, str]:
    """Returns testbed and host of `HOST` or `NAME:HOST`. Raises ValueError if several testbeds run."""
    name, colon, host = place.rpartition(":")
    return only(name if colon else None), host


def only(name: str | None) -> str:
    """Returns the given name, or that of the only testbed. Raises ValueError for none or several."""
    if name is not None:
        return name
    running = names()
    if len(running) == 1:
        return running[0]
    if not running:
        raise ValueError("no testbed is running (start one with longfat net STUDY)")
    raise ValueError(f"several testbeds are running, choose one: {', '.join(running)}")


def describe(name: str) -> Running:
    """Returns a testbed's description. Raises OSError if it stops before it answers."""
    with connect(name) as connection:
        connection.send(json.dumps({"do": "describe"}).encode())
        answer = receive(connection)
    return Running(name, int(answer["pid"]), str(answer["study"]), tuple(map(str, answer["hosts"])))


def receive(connection: socket.socket) -> dict[str, Any]:
    """Returns the next message. Raises OSError if the testbed stopped."""
    message = connection.recv(LONGEST)
    if not message:
        raise OSError("the testbed stopped")
    content: dict[str, Any] = json.loads(message)
    return content


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    return made


def _address(name: str) -> bytes:
    return f"\0{_PREFIX}{_USER}/{name}".encode()
