"""The path manager's socket: clients accept a server of root or of their own user only."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

import pytest
from tests import requirements

from longfat import mptcp

NOBODY = 65534
STATUS = b'{"status":{"peers":[],"connections":[]}}\n'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets need Linux")


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """The socket name of the path manager, for this test only."""
    made = f"longfat/test/{os.getpid()}/manager"
    monkeypatch.setattr(mptcp, "NAME", made)
    return made


def _serve(name: str, user: int | None) -> int:
    """Starts a process of a user that replies to one request; returns its process ID.

    The kernel records the user in `listen`.
    """
    ready, signal = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if user is not None:
                os.setresuid(user, user, user)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(f"\0{name}")
            listening.listen()
            os.write(signal, b"!")
            listening.settimeout(10)
            # The client connects once to check the user and once for the request.
            while True:
                connection, _ = listening.accept()
                if connection.recv(4096):
                    connection.sendall(STATUS)
        finally:
            os._exit(0)
    os.close(signal)
    assert os.read(ready, 1) == b"!"
    os.close(ready)
    return child


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """A server of the given user."""
    if request.param is not None and os.geteuid() != 0:
        requirements.skip("users", "becoming another user takes root")
    child = _serve(name, request.param)
    yield
    os.kill(child, 9)
    os.waitpid(child, 0)


@pytest.mark.parametrize("server", [None], indirect=True)
@pytest.mark.usefixtures("server")
def test_accepts_a_manager_of_this_user() -> None:
    assert mptcp.status() == {"peers": [], "connections": []}


@pytest.mark.parametrize("server", [NOBODY], indirect=True)
@pytest.mark.usefixtures("server")
def test_refuses_a_manager_of_another_user(name: str) -> None:
    with pytest.raises(OSError, match=f"@{name} belongs to user {NOBODY}, who is neither root nor this user"):
        mptcp.status()
    assert not mptcp._runs(name)
