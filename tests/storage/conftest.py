"""An S3-compatible server, as a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests import requirements
from tests.waiting import PATIENCE_S

STUDY: dict[str, Any] = {
    "title": "Reno and CUBIC",
    "repeats": 40,
    "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"},
    "workload": {"kind": "file", "size": "60kB"},
    "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}, {"name": "cubic", "kind": "tcp"}],
    "sweep": {"path.loss": ["0.1%", "1%"]},
    "claims": [
        {
            "id": "as-fast",
            "text": "CUBIC is not slower than Reno",
            "metric": "goodput",
            "of": "cubic",
            "against": "reno",
            "relation": "not-lower",
        }
    ],
}


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of a server without buckets."""
    missing = [name for name in ("moto", "flask", "s3fs") if importlib.util.find_spec(name) is None]
    if missing:
        requirements.skip("programs", f"no Python package {', '.join(missing)}")
    server = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import main; main(['-p', '0'])"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    address = next(
        line.rpartition(" ")[2].strip() for line in server.stderr if " * Running on http://" in line
    )
    drained = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address):
                break
        except OSError:
            time.sleep(0.05)
    yield address
    server.kill()
    server.wait()
    server.stderr.close()
    drained.wait()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The URL of an empty bucket, with credentials in the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"runs-{abs(hash(request.node.nodeid)) % 10**12}"
    import fsspec  # type: ignore[import-untyped]

    fsspec.filesystem("s3", use_listings_cache=False).mkdir(name)
    return f"s3://{name}"
