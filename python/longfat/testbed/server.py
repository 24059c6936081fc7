"""Serves requests of other processes to a testbed: commands at its hosts, its description, its end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from longfat.system.local_sockets import peer
from longfat.testbed import children, directory

if TYPE_CHECKING:
    from longfat._native import Testbed

_STREAMS = 3


class Server:
    """Listens until it is closed, with a thread for each request."""

    def __init__(self, testbed: Testbed, listening: socket.socket, study: str) -> None:
        self._testbed = testbed
        self._listening = listening
        self._study = study
        self.is_stopping = False
        """Whether another process has requested the end of the testbed."""
        self._hosts = [host["name"] for host in json.loads(testbed.hosts())]
        threading.Thread(target=self._listen, name="testbed", daemon=True).start()

    def close(self) -> None:
        """Stops listening, which frees the name at once."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        streams: list[int] = []
        with connection, contextlib.suppress(OSError, ValueError):
            if peer(connection)[1] != os.getuid():
                return
            message, streams, _, _ = socket.recv_fds(connection, directory.LONGEST, _STREAMS)
            try:
                self._answer(connection, json.loads(message), streams)
            finally:
                for stream in streams:
                    os.close(stream)

    def _answer(self, connection: socket.socket, request: dict[str, Any], streams: list[int]) -> None:
        match request.get("do"):
            case "describe":
                _send(connection, pid=os.getpid(), study=self._study, hosts=self._hosts)
            case "stop":
                _send(connection, stopping=True)
                self.is_stopping = True
                os.kill(os.getpid(), signal.SIGTERM)
            case "exec" if len(streams) == _STREAMS:
                self._run(connection, request, streams)
            case other:
                _send(connection, error=f"unknown request {other!r}: the testbed runs another version")

    def _run(self, connection: socket.socket, request: dict[str, Any], streams: list[int]) -> None:
        try:
            pid = self._testbed.run(
                str(request["host"]), json.dumps(request["options"]), (streams[0], streams[1], streams[2])
            )
        except ValueError as error:
            _send(connection, error=str(error), code=2)
            return
        except OSError as error:
            _send(connection, error=children.why(error), code=children.code_of(error))
            return
        # Readers of the command's output must see its end when the command exits.
        while streams:
            os.close(streams.pop())
        _send(connection, code=_follow(connection, pid))


def _follow(connection: socket.socket, pid: int) -> int:
    """Waits for a command and passes signals to it; stops it when the requesting process disconnects."""
    handle = os.pidfd_open(pid)
    try:
        while True:
            ready, _, _ = select.select([handle, connection.fileno()], [], [])
            if handle in ready:
                return children.code_from(os.waitpid(pid, 0)[1])
            message = connection.recv(directory.LONGEST)
            if not message:
                return children.end(pid)
            children.signal_group(pid, int(json.loads(message)["signal"]))
    except OSError:
        return children.end(pid)
    finally:
        os.close(handle)


def _send(connection: socket.socket, **answer: Any) -> None:
    with contextlib.suppress(OSError):
        connection.send(json.dumps(answer).encode())
