"""Transfers files through `longfat relay` over slow and lossy paths, and compares with targets.

Each transfer runs `longfat recv`, `longfat relay` and `longfat send`, encrypted and with default settings.
The MTU of each path is 1500 bytes and its queue one bandwidth-delay product. Loss applies to both directions.
Goodput is measured from the first packet of the handshake to the receiver's last confirmation.

The bound assumes a sender that fills the link from the first byte, plus three round trips: the handshake, the
offer of the file, and the last byte with its confirmation. The payload rate is the link's rate without the
overhead of full packets. The packets necessary are those of the file times 1 / (1 - loss). Exits with 1 if a
target is missed.

Usage: python benchmarks/transfer_paths.py [--mb 100 20] [--rounds 3] [--path 2] [--dir DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from longfat import _native

LONGFAT = [str(Path(sys.executable).with_name("longfat"))]
MSS = 1400
OVERHEAD = 28 + 32 + 16
"""Overhead of a full packet in bytes: IPv4 and UDP headers, the frame header, and the encryption tag."""
ROUND_TRIPS = 3
"""Round trips of the shortest transfer: handshake, offer, and the last byte with its confirmation."""
MAX_PACKETS = 1.15
"""Limit of packets sent, as a multiple of the packets necessary."""


@dataclass(frozen=True)
class Lane:
    """A path and its required goodput: `share` of the payload rate, or `mbits` (Mbit/s)."""

    title: str
    settings: tuple[str, ...]
    rtt: float
    loss: float
    rate: float | None = None
    share: float | None = None
    mbits: float | None = None

    @property
    def payload_rate(self) -> float | None:
        """Returns the payload rate of the link in Mbit/s; None without a limit."""
        return None if self.rate is None else self.rate * MSS / (MSS + OVERHEAD)

    @property
    def target(self) -> float:
        """Returns the required goodput in Mbit/s."""
        if self.mbits is not None:
            return self.mbits
        assert self.share is not None
        assert self.payload_rate is not None
        return self.share * self.payload_rate

    def bound(self, size: int) -> float | None:
        """Returns an ideal sender's goodput in Mbit/s for a file of `size` bytes; None without a limit."""
        if self.payload_rate is None:
            return None
        seconds = size * 8e-6 / (self.payload_rate * (1 - self.loss)) + ROUND_TRIPS * self.rtt
        return size * 8e-6 / seconds


def lane(rtt_ms: int, loss: float, rate: float | None = None, **target: float) -> Lane:
    """Returns the path with this RTT, loss per direction and rate (Mbit/s)."""
    settings = ["--delay", f"{rtt_ms / 2}ms", "--loss", f"{loss:.0%}", "--mtu", "1500B"]
    title = f"{rtt_ms} ms, {loss:.0%} loss, unlimited"
    if rate is not None:
        settings += ["--rate", f"{rate}Mbit/s", "--queue", f"{int(rate * 1e6 * rtt_ms / 8e3)}B"]
        title = f"{rate} Mbit/s, {rtt_ms} ms, {loss:.0%} loss"
    return Lane(title, tuple(settings), rtt_ms / 1e3, loss, rate, **target)


LANES = (
    lane(20, 0.0, 100, share=0.96),
    lane(20, 0.01, 100, share=0.93),
    lane(100, 0.02, 50, mbits=45.0),
    lane(10, 0.1, mbits=400.0),
)


@dataclass(frozen=True)
class Result:
    """One transfer: Mbit/s, and packets sent over packets necessary."""

    mbits: float
    packets: float


@contextmanager
def listening(*words: str) -> Iterator[str]:
    """Runs a command that listens; yields its address."""
    process = subprocess.Popen([*LONGFAT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"Listening on (\S+)", line)
        if found is None:
            raise RuntimeError(f"{words[0]}: {line}{process.stderr.read()}")
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def transfer(path: Lane, file: Path, seed: int) -> Result:
    """Sends `file` over `path`; `seed` selects the losses."""
    code = ("--code", _native.new_code())
    anywhere = ("--listen", "127.0.0.1:0")
    with (
        tempfile.TemporaryDirectory(dir=file.parent) as folder,
        listening("recv", *anywhere, "--dir", folder, "--once", *code) as receiver,
        listening("relay", *anywhere, "--to", receiver, "--seed", str(seed), *path.settings) as relay,
    ):
        out = subprocess.run(
            [*LONGFAT, "send", str(file), relay, *code, "--json"],
            check=True,
            capture_output=True,
            timeout=600,
        ).stdout
        if (Path(folder) / file.name).read_bytes() != file.read_bytes():
            raise RuntimeError(f"{file} did not arrive intact")
    sent = json.loads(out)
    necessary = ceil(file.stat().st_size / MSS) / (1 - path.loss)
    return Result(sent["goodput_bps"] / 1e6, sent["packets_sent"] / necessary)


def report(path: Lane, megabytes: int, results: list[Result]) -> bool:
    """Prints the medians of `results`; returns whether they meet the targets."""
    mbits = statistics.median(result.mbits for result in results)
    packets = statistics.median(result.packets for result in results)
    share = "" if path.payload_rate is None else f" ({mbits / path.payload_rate:.1%} of the payload rate)"
    bound = path.bound(megabytes * 1_000_000)
    ideal = "" if bound is None else f", bound {bound:.1f}"
    holds = mbits >= path.target and packets <= MAX_PACKETS
    print(
        f"{path.title}, {megabytes} MB: {mbits:.1f} Mbit/s{share}, target {path.target:.1f}{ideal}; "
        f"{packets:.3f} of the packets necessary; {'holds' if holds else 'missed'}",
        flush=True,
    )
    return holds


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, nargs="+", default=[100, 20], help="sizes of the files")
    parser.add_argument("--rounds", type=int, default=3, help="transfers of each file over each path")
    parser.add_argument("--path", type=int, help="only this path, counted from 0")
    parser.add_argument("--dir", type=Path, help="folder of the files")
    parser.add_argument("-v", action="store_true", help="print each transfer")
    options = parser.parse_args()
    lanes = LANES if options.path is None else LANES[options.path : options.path + 1]
    hold = True
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        for size in options.mb:
            file = Path(folder) / f"{size}MB"
            file.write_bytes(os.urandom(size * 1_000_000))
            for path in lanes:
                results = []
                for seed in range(1, options.rounds + 1):
                    results.append(transfer(path, file, seed))
                    if options.v:
                        print(f"    {results[-1]}", flush=True)
                hold &= report(path, size, results)
            file.unlink()
    sys.exit(not hold)


if __name__ == "__main__":
    main()
