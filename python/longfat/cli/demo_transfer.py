"""A file moved between two sockets on loopback through a relay, all in this process."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import longfat


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
        with (
            longfat.receive(folder / "received", listen="127.0.0.1:0", insecure=True, once=True) as receiver,
            longfat.relay(path, receiver.address, seed=seed) as relay,
        ):
            done = longfat.send(sent, relay.address, insecure=True, protocol=protocol)
            late = relay.stop()["late_p99_s"]
        if not done.is_complete:
            raise OSError(f"the transfer failed: {done.files[0]['detail']}")
        if (folder / "received" / sent.name).read_bytes() != sent.read_bytes():
            raise OSError("the received file differs from the sent one")
        return Moved(done.report["seconds"], late or 0.0)
