"""Scenes cannot load code or read files of this machine, and other pages cannot reach the engine."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.test_engine import SPEC
from tests.waiting import PATIENCE_S

from longfat.cli.explorer_server import ExplorerServer

PROOF = "proof"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ExplorerServer]:
    (tmp_path / "index.html").write_text("page", encoding="utf-8")
    with ExplorerServer(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE_S)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A file that leaves a proof when it is imported."""
    file = tmp_path / "code.py"
    file.write_text(f"import pathlib\npathlib.Path({str(tmp_path / PROOF)!r}).touch()\n", encoding="utf-8")
    return file


def post(server: ExplorerServer, name: str, body: bytes, **headers: str) -> tuple[int, Any]:
    made = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE_S)
    with closing(made) as connection:
        connection.request("POST", f"/{server.token}/{name}", body, {"Host": server.host, **headers})
        answer = connection.getresponse()
        content = answer.read()
    return answer.status, json.loads(content) if answer.status == 200 else content


def spec(**changes: Any) -> dict[str, Any]:
    return {**SPEC, **changes}


def test_a_scene_does_not_load_classes(server: ExplorerServer, code: Path) -> None:
    name = f"{code}:Class"
    tcp = {"kind": "tcp", "congestion": name}
    specs = [
        spec(protocol=tcp),
        spec(protocol={"kind": "tcp", "congestion": {"kind": name}}),
        spec(path={**SPEC["path"], "queue": name}),
        spec(path={"hops": [{"rate": "1Mbit/s", "queue": {"kind": name}}]}),
        spec(protocol={"kind": "mptcp", "scheduler": name}),
        spec(protocol={"kind": "mptcp", "policy": name}),
        spec(traffic=[{"name": "x", "protocol": tcp, "workload": {"kind": "bulk"}}]),
    ]
    for one in specs:
        for do in ("open", "run"):
            request = {"do": do, "spec": one, **({"interval": 0.1} if do == "open" else {})}
            status, reply = post(server, "call", json.dumps(request).encode())
            assert status == 200
            assert "is not available here" in reply["error"], reply
        _, reply = post(server, "theory", json.dumps(one).encode())
        assert "ok" not in reply or not (code.parent / PROOF).exists()
    _, opened = post(server, "call", json.dumps({"do": "open", "spec": SPEC, "interval": 0.1}).encode())
    session = opened["ok"]["session"]
    changes = [
        {"do": "link", "session": session, "link": "forward", "key": "queue", "value": name},
        {"do": "protocol", "session": session, "key": "congestion", "value": name},
    ]
    for change in changes:
        _, reply = post(server, "call", json.dumps(change).encode())
        assert "is not available here" in reply["error"], reply
    assert not (code.parent / PROOF).exists()


def test_a_scene_does_not_read_files(server: ExplorerServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    sizes = {
        "kind": "arrivals",
        "arrivals": "10/s",
        "duration": "1s",
        "sizes": "table",
        "sizes_file": str(secret),
    }
    _, opened = post(server, "call", json.dumps({"do": "open", "spec": SPEC, "interval": 0.1}).encode())
    change = {"do": "link", "session": opened["ok"]["session"], "link": "forward", "key": "trace"}
    requests = [
        {"do": "run", "spec": spec(path={"trace": str(secret)})},
        {"do": "run", "spec": spec(workload=sizes)},
        {**change, "value": str(secret)},
    ]
    for request in requests:
        _, reply = post(server, "call", json.dumps(request).encode())
        assert "is not available here" in reply["error"], reply


def test_refuses_other_origins_and_hosts(server: ExplorerServer) -> None:
    version = json.dumps({"do": "version"}).encode()
    assert post(server, "call", version)[0] == 200
    assert post(server, "call", version, Origin=f"http://{server.host}")[0] == 200
    assert post(server, "call", version, Origin="https://example.org")[0] == 404
    assert post(server, "call", version, Origin="null")[0] == 404
    assert post(server, "call", version, Host="example.org")[0] == 404


@pytest.mark.parametrize("name", ["call", "theory"])
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"do":' * 50_000, b"\xff\xfe", b"", b"7", b"[]", b'{"do": 1}']
)
def test_a_malformed_request_is_one_line(server: ExplorerServer, name: str, body: bytes) -> None:
    status, reply = post(server, name, body)
    if not body:
        assert status == 404
        return
    assert status == 200
    assert len(reply["error"].splitlines()) == 1, reply


def test_a_wrong_length_is_refused(server: ExplorerServer) -> None:
    for length in ("x", "-5", "1e3", "99999999999"):
        made = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE_S)
        with closing(made) as connection:
            connection.putrequest("POST", f"/{server.token}/call", skip_host=True)
            connection.putheader("Host", server.host)
            connection.putheader("Content-Length", length)
            connection.endheaders()
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 404
