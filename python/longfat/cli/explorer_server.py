"""The web server of `longfat explore`: files of the page, and the native simulator behind one address."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import longfat
from longfat import _native

PAGE = "explorer"
FILES = {
    "index.html": "text/html; charset=utf-8",
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "simulator.js": "text/javascript; charset=utf-8",
}
"""The files of the page, and their types. The simulator may be missing: the native engine replaces it."""
STUDY = "study.json"
"""The study that the page opens, if there is one."""
_LARGEST_REQUEST = 1 << 20
_SIMULATOR_FILE = "simulator.js"
_SIMULATOR = b"LONGFAT_SIMULATOR"


def folder(*, wasm: bool) -> Path:
    """The folder of the page. ValueError if it is not built, or lacks the simulator that `wasm` requires."""
    found = Path(longfat.__file__).parent / PAGE
    if any(not (found / name).is_file() for name in FILES if name != _SIMULATOR_FILE):
        raise ValueError("the explorer's page is not built: make explorer builds it")
    simulator = found / _SIMULATOR_FILE
    if wasm and not (simulator.is_file() and _SIMULATOR in simulator.read_bytes()[:64]):
        raise ValueError(
            "--wasm: the page was built without WebAssembly; make explorer lists what is missing"
        )
    return found


def theory(request: bytes) -> str:
    """Replies to a request for closed forms."""
    # The closed forms load packages that the server needs for nothing else.
    from longfat.cli.explorer_theory import reply

    return reply(request)


def _length(header: str | None) -> int:
    """The length of a request's content; 0 without a valid one."""
    return int(header) if header is not None and header.isascii() and header.isdigit() else 0


class ExplorerServer(ThreadingHTTPServer):
    """Serves on 127.0.0.1, only below a random path."""

    daemon_threads = True

    def __init__(self, page: Path, port: int = 0, study: Mapping[str, str] | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.page = page
        self.token = secrets.token_urlsafe(16)
        self.engine = _native.Explorer()
        self.study = study
        """The study that the page opens: its name, its text, and a note."""

    @property
    def host(self) -> str:
        """The only valid Host header."""
        return f"127.0.0.1:{self.server_port}"

    def address(self, scene: str = "", *, native: bool = True) -> str:
        """The address of the page with a scene."""
        keys = [*(["engine=native"] if native else []), *(["study"] if self.study is not None else [])]
        query = f"?{'&'.join(keys)}" if keys else ""
        fragment = f"#{scene}" if scene else ""
        return f"http://{self.host}/{self.token}/index.html{query}{fragment}"


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Header and content leave together: as two packets, the second one waits for a delayed ACK of 40 ms."""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        name = self._name()
        kind = FILES.get(name or "")
        if name == STUDY and self.server.study is not None:
            self._answer(HTTPStatus.OK, "application/json", json.dumps(self.server.study).encode())
            return
        if name is None or kind is None:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
        else:
            file = self.server.page / name
            missing = name == _SIMULATOR_FILE and not file.is_file()
            self._answer(HTTPStatus.OK, kind, b"" if missing else file.read_bytes())

    def do_POST(self) -> None:
        length = _length(self.headers.get("Content-Length"))
        name = self._name()
        if name not in ("call", "theory") or not 0 < length <= _LARGEST_REQUEST:
            self.close_connection = True
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
            return
        request = self.rfile.read(length)
        # A scene from a link or a file of others must not load code or read files.
        reply = _native.confined(self.server.engine.reply if name == "call" else theory, request)
        self._answer(HTTPStatus.OK, "application/json", reply.encode())

    def _name(self) -> str | None:
        """The requested name below the token; None for another path or host."""
        parts = self.path.partition("?")[0].split("/")
        known = len(parts) == 3 and secrets.compare_digest(parts[1].encode(), self.server.token.encode())
        # A page of another origin sends its own, also in requests without a preflight.
        own = self.headers.get("Origin") in (None, f"http://{self.server.host}")
        return parts[2] if known and own and self.headers.get("Host") == self.server.host else None

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Prints nothing: errors reach the page."""
