"""A relay and emulated hosts as the network under another implementation of QUIC, aioquic."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.conftest import Cli, Data

import longfat as lf

pytest.importorskip("aioquic")
from tests.api.quic_peer import ask, listening

ROOT = Path(__file__).parents[2]


async def exchanged(content: bytes, path: lf.Path) -> tuple[bytes, Data]:
    """Returns the answer to bytes that a client sends through a relay, and the relay's report."""
    async with listening("127.0.0.1", 0) as port:
        with lf.relay(path, f"127.0.0.1:{port}", seed=1) as relay:
            host, _, near = relay.address.rpartition(":")
            answer = await ask(host, int(near), content)
        return answer, relay.report


def test_a_relay_carries_a_connection_over_loss() -> None:
    content = bytes(range(256)) * 400
    path = lf.Path(rate="20Mbit/s", delay="5ms", loss="5%")
    answer, report = asyncio.run(exchanged(content, path))
    assert answer == content
    assert report["forward"]["lost"] + report["reverse"]["lost"] > 0
    assert report["reverse"]["delivered_bytes"] > len(content)


@pytest.mark.usefixtures("emulated")
def test_emulated_hosts_carry_a_connection_over_loss(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    peer = f"{sys.executable} -m tests.api.quic_peer"
    path = ("--rate", "20Mbit/s", "--delay", "5ms", "--loss", "5%", "--json")
    server = ("--server", f"{peer} serve 4433", "--wait-port", "4433/udp")
    ran = cli("shell", *path, *server, "--", "sh", "-c", f"{peer} ask $LONGFAT_PEER 4433 100000 > answer")
    assert (tmp_path / "answer").read_text() == "equal\n"
    summary = json.loads(ran.stderr.splitlines()[-1])
    assert summary["forward"]["lost"] + summary["reverse"]["lost"] > 0
