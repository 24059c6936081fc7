"""The control interface of a TCP relay: HTTP with JSON, on loopback, with a bearer token.

Web pages cannot use it: a request with `Origin`, or with another `Host` than the address, is refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import threading
from collections.abc import Callable
from email.message import Message
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from longfat.api import addresses
from longfat.system.local_server import LocalHandler, RequestError
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.api.tcp_relays import TcpRelay

LISTEN = "127.0.0.1:8475"
"""The default address of the control interface."""
_LARGEST = 64 * 1024
_TIMEOUT_S = 10.0


class ControlServer:
    """Serves the control interface of one relay, in threads.

    Raises ParameterError for an address that is not in 127.0.0.0/8, and OSError if it is in use.
    """

    def __init__(self, listen: str, token: str | None = None) -> None:
        host, _, port = addresses.listening(listen, "control").rpartition(":")
        if not _is_loopback(host):
            raise ParameterError("control", f'"{listen}": must be an IPv4 address on loopback, e.g. {LISTEN}')
        self.token = token or secrets.token_urlsafe(24)
        try:
            self._server = _Server((host, int(port)), _Handler)
        except OSError as error:
            raise OSError(f"cannot listen at {listen}: {error.strerror}") from None
        at, number = self._server.server_address[:2]
        self.address = f"{at!s}:{number}"
        self.url = f"http://{self.address}"
        self._server.token = self.token
        self._server.hosts = frozenset({self.address, f"localhost:{number}", f"127.0.0.1:{number}"})

    def start(self, relay: TcpRelay) -> None:
        """Starts the server thread."""
        self._server.relay = relay
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stops the server."""
        if self._server.relay is not None:
            self._server.shutdown()
        self._server.server_close()


def _is_loopback(host: str) -> bool:
    """Returns whether a host is `localhost` or an IPv4 address of loopback."""
    try:
        return host == "localhost" or ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    token: str
    hosts: frozenset[str] = frozenset()
    relay: TcpRelay | None = None


def _body(given: Any, **kinds: type) -> dict[str, Any]:
    """Returns a JSON object whose keys are known and have these types."""
    if not isinstance(given, dict):
        raise ValueError("the body is not a JSON object")
    for key, value in given.items():
        if key not in kinds:
            raise ValueError(f"{key}: unknown key; allowed: {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            raise ValueError(f"{key}: {value!r}: must be {kinds[key].__name__}")
    return given


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None


def _get_path(relay: TcpRelay, _: Any) -> dict[str, Any]:
    return {"settings": relay.settings, **relay.path}


def _patch_path(relay: TcpRelay, body: Any) -> dict[str, Any]:
    if not isinstance(body, dict) or not body:
        raise ValueError('the body has no keys of the path: write {"loss": "2%"}')
    relay.set(body)
    return _get_path(relay, None)


def _post_outage(relay: TcpRelay, body: Any) -> dict[str, Any]:
    given = _body(body, duration=str, direction=str)
    if "duration" not in given:
        raise ValueError('duration: missing: write {"duration": "2s"}')
    relay.start_outage(given["duration"], given.get("direction", "both"))
    return given


def _delete_outage(relay: TcpRelay, _: Any) -> dict[str, Any]:
    relay.end_outage()
    return {}


def _post_drops(relay: TcpRelay, body: Any) -> dict[str, Any]:
    given = _body(body, count=int, direction=str)
    relay.drop_next(given.get("count", 1), given.get("direction", "both"))
    return given


def _post_resets(relay: TcpRelay, _: Any) -> dict[str, Any]:
    relay.reset_connections()
    return {}


def _get_report(relay: TcpRelay, _: Any) -> dict[str, Any]:
    return relay.report


def _get_openapi(_: TcpRelay, __: Any) -> dict[str, Any]:
    return openapi()


_DIRECTION = {"type": "string", "enum": ["both", "forward", "reverse"], "default": "both"}
_ROUTES: dict[tuple[str, str], tuple[Callable[[TcpRelay, Any], Any], str, dict[str, Any] | None]] = {
    ("GET", "/path"): (_get_path, "Keys of the path, as set and by direction", None),
    ("PATCH", "/path"): (
        _patch_path,
        "Change keys of the path; null removes a key",
        {"type": "object", "minProperties": 1, "example": {"loss": "2%", "reverse.delay": "80ms"}},
    ),
    ("POST", "/outage"): (
        _post_outage,
        "Start an outage",
        {
            "type": "object",
            "required": ["duration"],
            "properties": {"duration": {"type": "string", "example": "2s"}, "direction": _DIRECTION},
        },
    ),
    ("DELETE", "/outage"): (_delete_outage, "End outages", None),
    ("POST", "/drops"): (
        _post_drops,
        "Drop the next packets",
        {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 1, "default": 1},
                "direction": _DIRECTION,
            },
        },
    ),
    ("POST", "/resets"): (_post_resets, "Reset all connections", None),
    ("GET", "/report"): (_get_report, "Counters and percentiles", None),
    ("GET", "/openapi.json"): (_get_openapi, "This description", None),
}


def openapi() -> dict[str, Any]:
    """Returns the OpenAPI description of the interface."""
    error = {"description": "An object with the key error: one line"}
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), (_, summary, body) in _ROUTES.items():
        operation: dict[str, Any] = {
            "summary": summary,
            "responses": {"200": {"description": "A JSON object"}, "4XX": error},
        }
        if body is not None:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "longfat relay", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


class _Handler(LocalHandler):
    server: _Server
    timeout = _TIMEOUT_S

    def _answer(self) -> None:
        try:
            status, answer = HTTPStatus.OK, self._handle()
        except RequestError as error:
            status, answer = error.status, {"error": str(error)}
        except ValueError as error:
            status, answer = HTTPStatus.BAD_REQUEST, {"error": "; ".join(str(error).splitlines())}
        except OSError as error:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - a mistake here must not leave a client without an answer
            status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"{type(error).__name__}: {error}"}
        self.reply(status, "application/json", json.dumps(answer).encode())

    # The names that the base class requires.
    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _answer  # noqa: N815

    def _handle(self) -> Any:
        self._authorize(self.headers)
        text = self.read_body(_LARGEST)
        path = self.path.partition("?")[0]
        route = _ROUTES.get((self.command, path))
        if route is None:
            methods = [method for method, known in _ROUTES if known == path]
            if methods:
                raise RequestError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path}: allowed: {', '.join(methods)}")
            known = ", ".join(dict.fromkeys(known for _, known in _ROUTES))
            raise RequestError(HTTPStatus.NOT_FOUND, f"{path}: unknown; known: {known}")
        relay = self.server.relay
        assert relay is not None
        return route[0](relay, _parsed(text) if route[2] is not None else None)

    def _authorize(self, headers: Message) -> None:
        if headers.get("Origin") is not None:
            raise RequestError(HTTPStatus.FORBIDDEN, "requests from web pages (Origin) are refused")
        if headers.get("Host") not in self.server.hosts:
            raise RequestError(HTTPStatus.FORBIDDEN, f"Host: use {min(self.server.hosts)}")
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise RequestError(
                HTTPStatus.UNAUTHORIZED, "the token is missing: send Authorization: Bearer TOKEN"
            )
        if not hmac.compare_digest(token.strip().encode(), self.server.token.encode()):
            raise RequestError(HTTPStatus.UNAUTHORIZED, "wrong token")


def control_server(control: bool | str, token: str | None) -> ControlServer | None:
    """Returns the server of a control interface; None for False. Raises ParameterError and OSError."""
    if control is False:
        if token is not None:
            raise ParameterError("token", "it is the token of {control}, which is not set")
        return None
    return ControlServer(LISTEN if control is True else control, token)
