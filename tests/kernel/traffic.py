"""TCP connections under a controller of the kernel, on `lo` of this thread's own namespace or over a path."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

CHUNK = 64 * 1024


@dataclass(frozen=True)
class TcpInfo:
    """What Linux tells of a connection (struct tcp_info of linux/tcp.h), as far as it is looked at here."""

    rtt_us: int
    least_rtt_us: int
    window: int
    retransmissions: int

    @classmethod
    def of(cls, connection: socket.socket) -> TcpInfo:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 152)
        # Eight bytes, 24 figures of 32 bits, four of 64 bits, and 32 bits again.
        figures = struct.unpack_from("=24I4Q4I", raw, 8)
        return cls(
            rtt_us=figures[15],  # tcpi_rtt
            least_rtt_us=figures[31],  # tcpi_min_rtt
            window=figures[18],  # tcpi_snd_cwnd
            retransmissions=figures[23],  # tcpi_total_retrans
        )


def choose(connection: socket.socket, controller: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def chosen(connection: socket.socket) -> str:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


class Sink:
    """Accepts one connection and counts what comes."""

    def __init__(self, address: str) -> None:
        self.listener = socket.create_server((address, 0))
        self.received = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.listener.getsockname()
        return host, port

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(CHUNK):
                self.received += len(chunk)

    def finish(self) -> int:
        """Bytes received, once the other end has closed."""
        self._thread.join(60)
        self.listener.close()
        return self.received


@contextlib.contextmanager
def connected(controller: str, to: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        choose(connection, controller)
        connection.connect(to)
        yield connection


def transfer(controller: str, size: int) -> tuple[str, int]:
    """What the kernel says that a connection on `lo` ran under, and how many bytes of `size` arrived."""
    sink = Sink("127.0.0.1")
    with connected(controller, sink.address) as connection:
        connection.sendall(bytes(size))
        name = chosen(connection)
    return name, sink.finish()


def send_for(
    connection: socket.socket, seconds: float, every: float, sample: Callable[[TcpInfo], None]
) -> None:
    """Sends as much as the connection takes, and looks at it now and then."""
    connection.settimeout(every)
    end = time.monotonic() + seconds
    due = time.monotonic()
    while (now := time.monotonic()) < end:
        if now >= due:
            sample(TcpInfo.of(connection))
            due += every
        with contextlib.suppress(TimeoutError):
            connection.send(bytes(CHUNK))
