"""The control interface of a TCP relay."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import PATIENCE_S, wait_until

import longfat

TOKEN = "a-token"


@pytest.fixture(scope="module")
def relay() -> Iterator[longfat.TcpRelay]:
    path = {"delay": "5ms"}
    with longfat.relay(path, "127.0.0.1:9", tcp=True, control="127.0.0.1:0", token=TOKEN) as relay:
        yield relay


def call(
    relay: longfat.TcpRelay, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    assert relay.control is not None
    connection = http.client.HTTPConnection(relay.control.address, timeout=30)
    given = {"Authorization": f"Bearer {TOKEN}", **headers}
    text = body if isinstance(body, str) else None if body is None else json.dumps(body)
    connection.request(method, path, text, {key: value for key, value in given.items() if value})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_reads_and_changes_the_path(relay: longfat.TcpRelay) -> None:
    assert call(relay, "GET", "/path") == (
        200,
        {"settings": {"delay": "5ms"}, "forward": {"delay": "5ms"}, "reverse": {"delay": "5ms"}},
    )
    status, changed = call(relay, "PATCH", "/path", {"loss": "2%", "reverse.loss": "0%"})
    assert status == 200
    assert changed["forward"] == {"delay": "5ms", "loss": "2%"}
    assert changed["reverse"] == {"delay": "5ms", "loss": "0%"}
    status, changed = call(relay, "PATCH", "/path", {"loss": None, "reverse": None})
    assert changed["settings"] == {"delay": "5ms"}


def test_starts_outages_drops_and_resets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with longfat.relay({"delay": "5ms"}, target, tcp=True, control="127.0.0.1:0", token=TOKEN) as relay:
            host, _, port = relay.address.rpartition(":")
            with socket.create_connection((host, int(port)), PATIENCE_S) as client:
                server = listener.accept()[0]
                server.settimeout(PATIENCE_S)

                def send(there: bytes, back: bytes) -> dict[str, Any]:
                    client.sendall(there)
                    assert server.recv(10) == there
                    server.sendall(back)
                    assert client.recv(10) == back
                    status, report = call(relay, "GET", "/report")
                    assert status == 200
                    return report

                report = send(b"a", b"b")
                assert set(report["forward"]["delay"]) == {"p50_s", "p90_s", "p99_s", "max_s"}
                assert [report[side]["lost"] for side in ("forward", "reverse")] == [0, 0]
                assert call(relay, "POST", "/drops", {"count": 2, "direction": "reverse"})[0] == 200
                report = send(b"c", b"d")
                assert [report[side]["lost"] for side in ("forward", "reverse")] == [0, 2]
                assert call(relay, "POST", "/outage", {"duration": "3600s", "direction": "forward"})[0] == 200
                client.sendall(b"e")
                wait_until(lambda: call(relay, "GET", "/report")[1]["forward"]["outage_dropped"] > 0)
                assert call(relay, "DELETE", "/outage") == (200, {})
                assert server.recv(10) == b"e"
                report = send(b"f", b"g")
                assert report["reverse"]["outage_dropped"] == 0
                assert call(relay, "POST", "/resets") == (200, {})
                with pytest.raises(ConnectionResetError):
                    client.recv(1)
                server.close()
            wait_until(lambda: call(relay, "GET", "/report")[1]["reset"] == 1)


def test_reads_the_body_of_each_request_on_a_persistent_connection(
    relay: longfat.TcpRelay, request: pytest.FixtureRequest
) -> None:
    assert relay.control is not None
    connection = http.client.HTTPConnection(relay.control.address, timeout=PATIENCE_S)
    request.addfinalizer(connection.close)
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def ask(method: str, path: str, body: Any = None) -> tuple[int, http.client.HTTPResponse, Any]:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response, json.loads(response.read())

    # http.client would reconnect: with the first socket kept, all requests use it.
    connection.connect()
    first = connection.sock
    for method, path, body, expected in (
        ("GET", "/report", None, 200),
        ("POST", "/resets", b"GET /evil HTTP/1.1\r\n\r\n", 200),
        ("DELETE", "/outage", b"{}", 200),
        ("PATCH", "/path", b"{", 400),
        ("DELETE", "/path", b"{}", 405),
        ("GET", "/report", None, 200),
    ):
        status, response, _ = ask(method, path, body)
        assert status == expected, (method, path)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert connection.sock is first, (method, path)
    # Without a chunk: the relay answers and closes as soon as it has the headers.
    connection.putrequest("PATCH", "/path")
    for header, value in (headers | {"Transfer-Encoding": "chunked"}).items():
        connection.putheader(header, value)
    connection.endheaders()
    response = connection.getresponse()
    status, answer = response.status, json.loads(response.read())
    assert (status, answer) == (411, {"error": "send Content-Length, not Transfer-Encoding"})
    assert response.headers["Connection"] == "close"
    assert "loss" not in relay.settings


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reported"),
    [
        ("PATCH", "/path", {"loss": "200%"}, 400, 'loss: "200%" is out of range'),
        ("PATCH", "/path", {"los": "2%"}, 400, "los: unknown key"),
        ("PATCH", "/path", {}, 400, "no keys"),
        ("PATCH", "/path", [1], 400, "no keys"),
        ("PATCH", "/path", "{", 400, "not JSON"),
        ("PATCH", "/path", "[" * 50_000, 400, "not JSON"),
        ("PATCH", "/path", "x" * 70_000, 413, "at most 65536 bytes"),
        ("POST", "/outage", {}, 400, "duration: missing"),
        ("POST", "/outage", {"duration": "2"}, 400, "is not a duration"),
        ("POST", "/outage", {"duration": "2s", "direction": "up"}, 400, '"up" is unknown'),
        ("POST", "/drops", {"count": 0}, 400, "out of range"),
        ("POST", "/drops", {"count": True}, 400, "must be int"),
        ("GET", "/paths", None, 404, "/paths: unknown"),
        ("DELETE", "/path", None, 405, "allowed: GET, PATCH"),
    ],
)
def test_answers_mistakes_with_one_line(
    relay: longfat.TcpRelay, method: str, path: str, body: Any, status: int, reported: str
) -> None:
    before = relay.settings
    found, answer = call(relay, method, path, body)
    assert found == status
    assert reported in answer["error"]
    assert "\n" not in answer["error"]
    assert relay.settings == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Origin": "http://127.0.0.1:8000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_refuses_wrong_tokens_and_web_pages(
    relay: longfat.TcpRelay, headers: dict[str, str], status: int
) -> None:
    for method, path in (("GET", "/report"), ("PATCH", "/path"), ("GET", "/openapi.json")):
        assert (
            call(relay, method, path, {"loss": "9%"} if method == "PATCH" else None, **headers)[0] == status
        )
    assert "loss" not in relay.settings


def test_describes_all_routes_as_openapi(relay: longfat.TcpRelay) -> None:
    status, described = call(relay, "GET", "/openapi.json")
    assert status == 200
    assert described["openapi"].startswith("3.")
    assert set(described["paths"]) == {"/path", "/outage", "/drops", "/resets", "/report", "/openapi.json"}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            given = {"duration": "1ms"} if path == "/outage" else {"delay": "5ms"} if path == "/path" else {}
            assert call(relay, method.upper(), path, given if body else None)[0] == 200, (method, path)
