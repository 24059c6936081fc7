"""Which testbeds are running, and how to reach them.

A testbed listens at a Unix socket with an abstract name (`unix(7)`): the name is there as long as somebody
holds the socket, so a killed testbed leaves nothing behind, and no file can be stale.
"""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.local_sockets import peer

_PREFIX = "longfat-net/"
LONGEST = 1 << 20
"""Bytes of a message, which holds a command and its environment."""
# Inside a user namespace the number becomes another one: names are those of the user outside.
_USER = os.getuid()


@dataclass(frozen=True)
class Running:
    """A testbed that is running."""

    name: str
    pid: int
    """Of the process that holds it."""
    study: str
    hosts: tuple[str, ...]


def clean_name(study: str) -> str:
    """A study's name as that of a testbed.

    >>> clean_name("congestion/delay"), clean_name("my study")
    ('congestion-delay', 'my-study')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", study).strip("-") or "study"


def listen(wanted: str | None, study: str) -> tuple[socket.socket, str]:
    """A socket under a name that no other testbed has; ValueError where it was asked for and is taken."""
    if wanted is not None and wanted != clean_name(wanted):
        raise ValueError(f'--name: "{wanted}": write letters, digits, ".", "_" and "-"')
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
    """The user's running testbeds."""
    prefix = f" @{_PREFIX}{_USER}/"
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return sorted({line.partition(prefix)[2] for line in lines if prefix in line})


def connect(name: str) -> socket.socket:
    """A connection to a testbed of this user's; ValueError where there is none of this name."""
    made = _socket()
    try:
        made.connect(_address(name))
    except OSError:
        made.close()
        running = names()
        there = f"; running: {', '.join(running)}" if running else "; none is running"
        raise ValueError(f'there is no testbed "{name}"{there} (longfat net STUDY starts one)') from None
    if peer(made)[1] != os.getuid():
        made.close()
        raise ValueError(f'the testbed "{name}" is another user\'s')
    return made


def find(place: str) -> tuple[str, str]:
    """The testbed and the host of `HOST` or `NAME:HOST`; ValueError where that is not clear."""
    name, colon, host = place.rpartition(":")
    return only(name if colon else None), host


def only(name: str | None) -> str:
    """This testbed, or the only one."""
    if name is not None:
        return name
    running = names()
    if len(running) == 1:
        return running[0]
    if not running:
        raise ValueError("no testbed is running (longfat net STUDY starts one)")
    raise ValueError(f"several testbeds are running, say which one: {', '.join(running)}")


def ask(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """One question to a testbed; OSError where it ends before it answers."""
    with connect(name) as connection:
        connection.send(json.dumps(request).encode())
        return receive(connection)


def describe(name: str) -> Running:
    """What a testbed says of itself."""
    told = ask(name, {"do": "describe"})
    return Running(name, int(told["pid"]), str(told["study"]), tuple(map(str, told["hosts"])))


def receive(connection: socket.socket) -> dict[str, Any]:
    """The next message."""
    message = connection.recv(LONGEST)
    if not message:
        raise OSError("the testbed has ended")
    content: dict[str, Any] = json.loads(message)
    return content


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    return made


def _address(name: str) -> bytes:
    return f"\0{_PREFIX}{_USER}/{name}".encode()
