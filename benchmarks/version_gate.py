"""Wrong decisions of `longfat.testing.compare_versions` about a TCP program, with the machine's own noise.

    python benchmarks/version_gate.py [--same 200] [--slower 100]

A program uploads 400 kB through `longfat relay --tcp` (50 Mbit/s, 5 ms each way, 0.1 % loss) and measures
its goodput until the server's answer. It is compared with itself, and with a version that wastes a tenth of
its time. Prints the outcomes and the pairs of measurements that they took.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
from collections import Counter
from functools import partial

import longfat as lf
from longfat.testing import compare_versions

PATH = {"rate": "50Mbit/s", "delay": "5ms", "loss": "0.1%", "queue": "200pkt"}
SIZE = 400_000


def serve(listener: socket.socket) -> None:
    """Reads each connection to its end and answers with one byte."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            while client.recv(1 << 20):
                pass
            client.sendall(b"!")


def upload(target: str, seed: int, idle: float = 0.0) -> float:
    """Returns the goodput of one upload in bit/s; `idle` is the share of the time that the program wastes."""
    with lf.relay(PATH, target, tcp=True, seed=seed) as relay:
        host, _, port = relay.address.rpartition(":")
        start = time.monotonic()
        with socket.create_connection((host, int(port))) as client:
            client.sendall(bytes(SIZE))
            client.shutdown(socket.SHUT_WR)
            client.recv(1)
        time.sleep((time.monotonic() - start) * idle / (1 - idle))
        return SIZE * 8 / (time.monotonic() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--same", type=int, default=200, help="comparisons of the program with itself")
    parser.add_argument("--slower", type=int, default=100, help="comparisons with the slower version")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        target = "{}:{}".format(*listener.getsockname())
        for name, idle, count in (("same", 0.0, options.same), ("10 % slower", 0.1, options.slower)):
            outcomes: Counter[str] = Counter()
            pairs = []
            for _ in range(count):
                new = partial(upload, target, idle=idle)
                found = compare_versions(new, partial(upload, target), "higher")
                outcomes[found.outcome] += 1
                pairs.append(len(found.new))
            if pairs:
                mean = statistics.mean(pairs)
                print(f"{name}: {dict(outcomes)}; pairs of measurements: {mean:.1f} on average", flush=True)


if __name__ == "__main__":
    main()
