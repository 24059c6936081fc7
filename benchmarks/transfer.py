"""How fast files go over loopback: longfat, encrypted and not, against the kernel's TCP, in turn, in one run.

Prints Gbit/s and CPU seconds a GiB of both, and their ratio pair by pair: a ratio holds where the
machine's speed drifts, an absolute figure does not. Then what the relay forwards and adds, and a lossy path.

Usage: python benchmarks/transfer.py [--mib 1024] [--rounds 3] [--dir DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 1 << 20


def build(*examples: str) -> list[Path]:
    """Builds examples of the socket crate, and gives their programs."""
    command = ["cargo", "build", "--release", "--locked", "--package", "longfat-socket"]
    for example in examples:
        command += ["--example", example]
    subprocess.run(command, cwd=ROOT, check=True)
    target = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
    )["target_directory"]
    return [Path(target) / "release" / "examples" / example for example in examples]


def kernel_tcp(file: Path) -> tuple[float, float]:
    """Sends `file` over TCP on loopback into another file; gives Gbit/s, and CPU s/GiB of both ends."""
    size = file.stat().st_size
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.NamedTemporaryFile(dir=file.parent) as copy,
    ):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            peer, _ = server.accept()
            buffer = bytearray(CHUNK)
            while read := peer.recv_into(buffer):
                copy.write(memoryview(buffer)[:read])
            copy.flush()
            peer.close()
            os._exit(0)
        own = resource.getrusage(resource.RUSAGE_SELF)
        with socket.create_connection(server.getsockname()) as peer, file.open("rb") as source:
            peer.sendfile(source)
        os.waitpid(child, 0)
        seconds = time.monotonic() - started
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    cpu = sum(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in ((before, after), (own, end)))
    return size * 8 / seconds / 1e9, cpu / (size / 2**30)


def longfat(program: Path, mib: int, folder: Path, *words: str) -> tuple[float, float, str]:
    """Runs the loopback example; gives Gbit/s, CPU seconds a GiB of both ends, and what it printed."""
    out = subprocess.run(
        [program, str(mib), str(folder), *words], check=True, capture_output=True, text=True
    ).stdout
    rate = float(re.search(r"([\d.]+) Gbit/s", out)[1])  # type: ignore[index]
    cpu = sum(float(number) for number in re.findall(r"(?:send|receive) ([\d.]+)", out))
    return rate, cpu, out.strip()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of transfers")
    parser.add_argument("--dir", type=Path, help="where the file and its copies lie")
    options = parser.parse_args()
    loopback, relay, lossy = build("loopback", "relay", "lossy")
    ratios, rates = [], []
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        file = folder / "file"
        with file.open("wb") as out:
            for _ in range(options.mib):
                out.write(os.urandom(CHUNK))
        for _ in range(options.rounds):
            tcp, tcp_cpu = kernel_tcp(file)
            rate, cpu, _ = longfat(loopback, options.mib, folder)
            plain, plain_cpu, _ = longfat(loopback, options.mib, folder, "insecure")
            ratios.append(rate / tcp)
            rates.append(rate)
            print(
                f"longfat {rate:.2f} Gbit/s ({cpu:.2f} CPU s/GiB), insecure {plain:.2f} Gbit/s "
                f"({plain_cpu:.2f} CPU s/GiB), kernel TCP {tcp:.2f} Gbit/s "
                f"({tcp_cpu:.2f} CPU s/GiB), ratio {rate / tcp:.2f}",
                flush=True,
            )
    print(f"median: longfat {statistics.median(rates):.2f} Gbit/s, ratio {statistics.median(ratios):.2f}")
    for program in (relay, lossy):
        print(f"\n{program.name}:", flush=True)
        subprocess.run([program], check=True)


if __name__ == "__main__":
    sys.exit(main())
