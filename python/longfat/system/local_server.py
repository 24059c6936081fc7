"""HTTP on loopback: the base of the explorer's server and of a relay's control interface."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any


class RequestError(Exception):
    """A request that is refused, with its status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        super().__init__(message)


class LocalHandler(BaseHTTPRequestHandler):
    """Handles the requests of a persistent connection. It prints nothing."""

    protocol_version = "HTTP/1.1"
    server_version = "longfat"
    sys_version = ""
    wbufsize = -1
    """Header and content leave together: as two packets, the second one waits for a delayed ACK of 40 ms."""
    disable_nagle_algorithm = True
    _read: object = None
    """The headers of the last request whose body was read."""

    def read_body(self, most: int) -> bytes:
        """Returns the body of the request; empty if there is none.

        Raises RequestError for a body of more than `most` bytes, or without a valid Content-Length.
        """
        if "Transfer-Encoding" in self.headers:
            raise RequestError(HTTPStatus.LENGTH_REQUIRED, "send Content-Length, not Transfer-Encoding")
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RequestError(HTTPStatus.BAD_REQUEST, f'Content-Length: "{length}" is not a number of bytes')
        if len(length) > len(str(most)) or int(length) > most:
            raise RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {most} bytes are allowed")
        self._read = self.headers
        return self.rfile.read(int(length))

    def reply(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        """Sends a response. The connection closes after it if the request has an unread body."""
        has_body = "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        if has_body and self._read is not self.headers:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Prints nothing: errors reach the client."""
