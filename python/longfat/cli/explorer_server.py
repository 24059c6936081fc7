"""The web server of `longfat explore`: files of the page, and the native simulator behind one address."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import longfat
from longfat import _native
from longfat.system.local_server import LocalHandler, RequestError

PAGE = "explorer"
FILES = {
    "index.html": "text/html; charset=utf-8",
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "simulator.js": "text/javascript; charset=utf-8",
    "log.html": "text/html; charset=utf-8",
    "log.js": "text/javascript; charset=utf-8",
}
"""The files of the pages, and their types. The simulator may be missing: the native engine replaces it."""
STUDY = "study.json"
"""The study that the page opens, if there is one."""
LOG = "log.qlog"
"""The log that the page of logs opens, if there is one."""
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


def _classes(study: Mapping[str, Any] | None) -> list[str]:
    """Returns the classes of a study's controllers."""
    if study is None:
        return []
    from longfat.cli.explorer_study import class_of

    found = (class_of(one["key"]["congestion"]) for one in study.get("controllers", ()))
    return [name for name in found if name is not None]


class ExplorerServer(ThreadingHTTPServer):
    """Serves on 127.0.0.1, only below a random path."""

    daemon_threads = True

    def __init__(
        self, page: Path, port: int = 0, study: Mapping[str, Any] | None = None, log: Path | None = None
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.page = page
        self.log = log
        """The qlog file that the page of logs opens."""
        self.token = secrets.token_urlsafe(16)
        self.study = study
        """The study that the page opens: its name, its text, a note, and its controllers in Python."""
        self.permitted = _classes(study)
        """The only classes that specifications name."""
        self.engine = _native.Explorer(self.permitted)

    def answer(self, request: bytes) -> str:
        """Replies to a request for the engine; with an error if a class of the study raises an exception."""
        try:
            return self.engine.reply(request)
        except ValueError as error:
            return json.dumps({"error": str(error)})

    def predict(self, request: bytes) -> str:
        """Replies to a request for closed forms."""
        # A scene from a link or a file of others must not load code or read files, except the study's own.
        return _native.confined(theory, request, self.permitted)

    @property
    def host(self) -> str:
        """The only valid Host header."""
        return f"127.0.0.1:{self.server_port}"

    def address(self, scene: str = "", *, native: bool = True) -> str:
        """The address of the page with a scene, or of the page of logs."""
        keys = [*(["engine=native"] if native else []), *(["study"] if self.study is not None else [])]
        if self.log is not None:
            keys.append(f"log={quote(self.log.name, safe='')}")
        query = f"?{'&'.join(keys)}" if keys else ""
        fragment = f"#{scene}" if scene else ""
        page = "index.html" if self.log is None else "log.html"
        return f"http://{self.host}/{self.token}/{page}{query}{fragment}"


class _Handler(LocalHandler):
    server: ExplorerServer

    def do_GET(self) -> None:  # noqa: N802 - the name that the base class requires
        name = self._name()
        kind = FILES.get(name or "")
        if name == STUDY and self.server.study is not None:
            self.reply(HTTPStatus.OK, "application/json", json.dumps(self.server.study).encode())
            return
        if name == LOG and self.server.log is not None:
            try:
                content = self.server.log.read_bytes()
            except OSError:
                self.reply(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
            else:
                self.reply(HTTPStatus.OK, "application/octet-stream", content)
            return
        if name is None or kind is None:
            self.reply(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
        else:
            file = self.server.page / name
            missing = name == _SIMULATOR_FILE and not file.is_file()
            self.reply(HTTPStatus.OK, kind, b"" if missing else file.read_bytes())

    def do_POST(self) -> None:  # noqa: N802 - the name that the base class requires
        name = self._name()
        try:
            request = self.read_body(_LARGEST_REQUEST) if name in ("call", "theory") else b""
        except RequestError:
            request = b""
        if not request:
            self.reply(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
            return
        reply = self.server.answer(request) if name == "call" else self.server.predict(request)
        self.reply(HTTPStatus.OK, "application/json", reply.encode())

    def _name(self) -> str | None:
        """The requested name below the token; None for another path or host."""
        parts = self.path.partition("?")[0].split("/")
        known = len(parts) == 3 and secrets.compare_digest(parts[1].encode(), self.server.token.encode())
        # A page of another origin sends its own, also in requests without a preflight.
        own = self.headers.get("Origin") in (None, f"http://{self.server.host}")
        return parts[2] if known and own and self.headers.get("Host") == self.server.host else None
