"""A file moved between two sockets on loopback through a relay, all in this process."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat import _native
from longfat.api.protection import INSECURE
from longfat.api.servers import Server


@dataclass(frozen=True)
class Moved:
    """What moving a file took."""

    seconds: float
    """Time from the first data to the last acknowledgement."""
    late: float
    """How late the relay forwarded datagrams, 99th percentile in s: the delay that this machine added."""


def move(size: int, protocol: Mapping[str, Any], path: Mapping[str, Any], seed: int = 1) -> Moved:
    """Sends `size` random bytes through a relay with this path, and compares what arrives.

    The frames are not encrypted, so that they are those of the simulated study.

    Args:
        size: Bytes of the file.
        protocol: Keys of a study's protocol, of an ARQ kind.
        path: Keys of a study's path.
        seed: Random seed of the path's losses and of the file's content.

    Raises:
        OSError: if a socket cannot be opened, the transfer fails, or the received file differs.
    """
    with tempfile.TemporaryDirectory(prefix="longfat-demo-") as name:
        folder = Path(name)
        (folder / "received").mkdir()
        sent = folder / "demo.bin"
        sent.write_bytes(random.Random(seed).randbytes(size))  # noqa: S311 - content, not a secret
        receiver = Server(
            lambda handle: _native.receive_files(
                "127.0.0.1:0", str(folder / "received"), INSECURE.document, '{"once": true}', handle
            )
        )
        relay = Server(
            lambda handle: _native.relay("127.0.0.1:0", receiver.address, json.dumps(path), seed, handle)
        )
        try:
            report = json.loads(
                _native.send_files([str(sent)], relay.address, INSECURE.document, json.dumps(protocol))
            )
        finally:
            relay.stop()
            receiver.stop()
        if report["files"][0]["outcome"] != "stored":
            raise OSError(f"the transfer failed: {report['files'][0]['detail']}")
        if (folder / "received" / sent.name).read_bytes() != sent.read_bytes():
            raise OSError("the received file differs from the sent one")
        return Moved(report["seconds"], json.loads(relay.result)["late_p99_s"] or 0.0)
