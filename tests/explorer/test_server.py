"""The web server of `longfat explore`."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

import longfat
from longfat.cli import explorer_server
from longfat.cli.explorer_server import ExplorerServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ExplorerServer]:
    for name in explorer_server.FILES:
        (tmp_path / name).write_text(name)
    with ExplorerServer(tmp_path) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.02,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def request(server: ExplorerServer, path: str, body: str | None = None, host: str = "") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    headers = {"Host": host or server.host}
    connection.request("GET" if body is None else "POST", path, body, headers)
    response = connection.getresponse()
    result = response.status, response.read().decode()
    connection.close()
    return result


def test_serves_the_page_below_its_token(server: ExplorerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert request(server, f"/{server.token}/index.html?engine=native") == (200, "index.html")
    assert request(server, f"/{server.token}/explorer.js") == (200, "explorer.js")
    assert request(server, f"/{server.token}/log.html") == (200, "log.html")


def test_serves_one_log(server: ExplorerServer, tmp_path: Path) -> None:
    address = f"/{server.token}/{explorer_server.LOG}"
    assert request(server, address)[0] == 404
    server.log = tmp_path / "own log.qlog"
    assert request(server, address)[0] == 404
    server.log.write_text("a log")
    assert request(server, address) == (200, "a log")
    assert request(server, address, host="attacker.example")[0] == 404
    assert request(server, f"/wrong/{explorer_server.LOG}")[0] == 404
    assert server.address().endswith("/log.html?engine=native&log=own%20log.qlog")


def test_replies_do_not_wait_for_delayed_acks(server: ExplorerServer) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    times = []
    for _ in range(15):
        start = time.perf_counter()
        connection.request("POST", f"/{server.token}/call", '{"do": "version"}')
        assert connection.getresponse().read().startswith(b'{"ok"')
        times.append(time.perf_counter() - start)
    connection.close()
    assert statistics.median(times) < 0.03


def test_other_paths_and_hosts_get_nothing(server: ExplorerServer) -> None:
    call = json.dumps({"do": "open"})
    for path in ("/index.html", "/", "/wrong/index.html", f"/{server.token}/../../etc/passwd"):
        assert request(server, path)[0] == 404
    assert request(server, f"/{server.token}/index.html", host="attacker.example")[0] == 404
    assert request(server, "/wrong/call", call)[0] == 404
    assert request(server, f"/{server.token}/call", call, host="attacker.example")[0] == 404


def test_simulates(server: ExplorerServer) -> None:
    spec = {
        "path": {"rate": "10Mbit/s"},
        "protocol": {"kind": "go-back-n"},
        "workload": {"kind": "file", "size": "10kB"},
        "seed": 1,
    }
    body = json.dumps({"do": "open", "spec": spec, "interval": 0.01})
    status, reply = request(server, f"/{server.token}/call", body)
    opened = json.loads(reply)["ok"]
    assert (status, opened["session"], opened["links"]) == (200, 0, ["forward", "reverse"])
    assert opened["ends"] == [[0, 1], [1, 0]]
    assert opened["bottlenecks"] == [0]


@pytest.mark.parametrize(
    ("protocol", "goodput", "note"),
    [
        ({"kind": "tcp", "congestion": "reno"}, 3.25e6, "Mathis"),
        ({"kind": "tcp", "congestion": "cubic"}, 2.88e6, "CUBIC"),
        ({"kind": "stop-and-wait", "rto": "500ms"}, 0.16e6, "stop-and-wait"),
    ],
)
def test_replies_with_closed_forms(
    server: ExplorerServer, protocol: dict[str, str], goodput: float, note: str
) -> None:
    spec = {
        "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "50pkt", "loss": "1%"},
        "protocol": protocol,
        "workload": {"kind": "bulk", "duration": "600s"},
        "seed": 1,
        "trial": 0,
    }
    status, reply = request(server, f"/{server.token}/theory", json.dumps(spec))
    found = json.loads(reply)["ok"]["goodput"]
    assert status == 200
    assert found["value"] == pytest.approx(goodput, rel=0.02)
    assert note in found["note"]
    assert "error" in json.loads(request(server, f"/{server.token}/theory", "{}")[1])


def test_a_page_that_is_not_built_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longfat, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(ValueError, match="make explorer"):
        explorer_server.folder(wasm=False)
    (tmp_path / "explorer").mkdir()
    for name in explorer_server.FILES:
        (tmp_path / "explorer" / name).touch()
    assert explorer_server.folder(wasm=False) == tmp_path / "explorer"
    with pytest.raises(ValueError, match="--wasm"):
        explorer_server.folder(wasm=True)
