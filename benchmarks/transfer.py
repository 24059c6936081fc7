"""Transfers a file over loopback with longfat, encrypted and insecure, and compares with TCP and QUIC.

Each round runs every transport once. longfat and TCP copy from file to file; the QUIC libraries (--peers)
copy from memory to memory, each with its defaults and with other windows and packet sizes. Prints Gbit/s and
CPU seconds per GiB of each end, then medians, and the medians of the ratios within a round, because ratios
are robust when the machine's speed drifts. The last lines compare with the best setting of each library.

With --programs the time includes the start and the end of both programs: from the start of the receiver,
which listens before the sender starts, until both have exited. longfat is then `longfat recv --once` and
`longfat send`, which need an optimised native module (`make setup`).

Without --peers and --programs, measurements of the relay and of lossy paths follow.

Usage: python benchmarks/transfer.py [--mib 1024] [--rounds 3] [--dir DIR] [--peers] [--programs]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "quic-peers"
LONGFAT = [str(Path(sys.executable).with_name("longfat"))]
CHUNK = 1 << 20
COPIES = 4
"""Copies whose memory is touched before a transfer: more than its own file, and what others have freed."""


LARGE = 64 << 20
"""Windows that hold more than loopback needs."""
VARIANTS = {
    "s2n-quic, defaults": ("s2n-quic",),
    "s2n-quic, MTU 9000": ("s2n-quic", "mtu=9000"),
    "s2n-quic, MTU 65000": ("s2n-quic", "mtu=65000"),
    "s2n-quic, windows of 64 MiB": ("s2n-quic", f"window={LARGE}"),
    "s2n-quic, windows of 64 MiB, MTU 9000": ("s2n-quic", f"window={LARGE}", "mtu=9000"),
    "s2n-quic, without GSO": ("s2n-quic", "gso=off"),
    "quinn, defaults": ("quinn",),
    "quinn, MTU 9000": ("quinn", "mtu=9000"),
    "quinn, MTU 65000": ("quinn", "mtu=65000"),
    "quinn, windows of 64 MiB": ("quinn", f"window={LARGE}"),
    "quinn, windows of 64 MiB, MTU 9000": ("quinn", f"window={LARGE}", "mtu=9000"),
    "quinn, without GSO": ("quinn", "gso=off"),
}
"""The QUIC libraries, each with settings that may be its best."""


@dataclass(frozen=True)
class Transfer:
    """One transfer: Gbit/s, and CPU seconds per GiB of the sender and of the receiver (0 if not measured)."""

    rate: float
    send: float
    receive: float

    def __str__(self) -> str:
        return f"{self.rate:.2f} Gbit/s, CPU s/GiB {self.send:.2f} + {self.receive:.2f}"


def cargo_build(folder: Path, *arguments: str) -> Path:
    """Builds the package in `folder` in release mode; returns the folder of its programs."""
    subprocess.run(["cargo", "build", "--release", "--locked", *arguments], cwd=folder, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"],
        cwd=folder,
        check=True,
        capture_output=True,
    ).stdout
    return Path(json.loads(metadata)["target_directory"]) / "release"


def build(*examples: str) -> list[Path]:
    """Builds examples of the socket crate; returns their programs."""
    names = [word for example in examples for word in ("--example", example)]
    folder = cargo_build(ROOT, "--package", "longfat-socket", *names) / "examples"
    return [folder / example for example in examples]


def kernel_tcp(file: Path) -> Transfer:
    """Sends `file` over TCP on loopback into another file."""
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
    receive, send = (
        (b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime) / (size / 2**30)
        for a, b in ((before, after), (own, end))
    )
    return Transfer(size * 8 / seconds / 1e9, send, receive)


def touch_memory(file: Path) -> None:
    """Copies `file` several times and removes the copies, so that every transport finds memory for its own.

    The host of a virtual machine may take free memory back, and then the first use of a page waits for the
    host, which took up to 3 s of a receiver's CPU time per GiB. Copies of files use new pages, and the QUIC
    libraries, which copy from memory to memory, do not.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        for number in range(COPIES):
            shutil.copyfile(file, Path(name) / str(number))


def measured(program: Path, *words: object) -> Transfer:
    """Runs a transfer program and parses its output."""
    command = [str(program), *map(str, words)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    rate, *cpu = (float(number) for number in re.findall(r"(?:^|send |receive )(\d+\.\d+)", out))
    return Transfer(rate, *cpu)


def whole_program(size: int, *words: object) -> Transfer:
    """Runs a program that starts its receiver itself; counts from its start to its end."""
    started = time.monotonic()
    subprocess.run([*map(str, words)], check=True, capture_output=True, timeout=600)
    return Transfer(size * 8 / (time.monotonic() - started) / 1e9, 0.0, 0.0)


def longfat_programs(file: Path) -> Transfer:
    """Runs `longfat recv --once` and `longfat send`; counts from the start of the first to the last exit."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        started = time.monotonic()
        receiver = subprocess.Popen(
            [*LONGFAT, "recv", "--once", "--dir", folder, "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert receiver.stdout is not None
        begun = json.loads(receiver.stdout.readline())
        command = [*LONGFAT, "send", str(file), begun["address"], "--code", begun["code"]]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        receiver.communicate(timeout=600)
        seconds = time.monotonic() - started
    return Transfer(file.stat().st_size * 8 / seconds / 1e9, 0.0, 0.0)


def ratio(ours: list[Transfer], theirs: list[Transfer]) -> float:
    """Returns the median over rounds of the ratio of the rates."""
    return statistics.median(one.rate / other.rate for one, other in zip(ours, theirs, strict=True))


def best(results: dict[str, list[Transfer]], library: str) -> str:
    """Returns the setting of a library with the highest median rate."""
    settings = [name for name in results if name.startswith(library)]
    return max(settings, key=lambda name: statistics.median(transfer.rate for transfer in results[name]))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--rounds", type=int, default=3, help="transfers of each transport")
    parser.add_argument("--dir", type=Path, help="folder of the file and its copies")
    parser.add_argument("--peers", action="store_true", help="compare with s2n-quic and quinn")
    parser.add_argument("--programs", action="store_true", help="count the start of the programs")
    parser.add_argument("--only", help="only transports whose names match this regular expression")
    options = parser.parse_args()
    loopback, relay, lossy = build("loopback", "relay", "lossy")
    transports: dict[str, Callable[[Path], Transfer]] = {
        "longfat": lambda file: measured(loopback, options.mib, file.parent),
        "longfat insecure": lambda file: measured(loopback, options.mib, file.parent, "insecure"),
        "kernel TCP": kernel_tcp,
    }
    if options.programs:
        transports = {"longfat": longfat_programs}
    if options.peers:
        peers = cargo_build(PEERS) / "quic-peers"
        for title, (library, *settings) in VARIANTS.items():
            words = (peers, library, options.mib, *settings)
            transports[title] = (
                partial(lambda words, file: whole_program(file.stat().st_size, *words), words)
                if options.programs
                else partial(lambda words, _: measured(*words), words)
            )
    if options.only:
        transports = {name: run for name, run in transports.items() if re.search(options.only, name)}
    results: dict[str, list[Transfer]] = {name: [] for name in transports}
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        file = Path(name) / "file"
        with file.open("wb") as out:
            for _ in range(options.mib):
                out.write(os.urandom(CHUNK))
        for number in range(options.rounds):
            for transport, transfer in transports.items():
                touch_memory(file)
                results[transport].append(transfer(file))
                print(f"round {number + 1}: {transport}: {results[transport][-1]}", flush=True)
    print(f"\nmedians of {options.rounds} rounds:")
    for transport, transfers in results.items():
        median = Transfer(
            *(statistics.median(getattr(t, field.name) for t in transfers) for field in fields(Transfer))
        )
        ratios = [
            f"{which} is {ratio(results[which], transfers):.2f}x as fast"
            for which in ("longfat", "longfat insecure")
            if which in results
        ]
        print(f"{transport}: {median}; {', '.join(ratios)}")
    for library in ("s2n-quic", "quinn"):
        if options.peers and any(name.startswith(library) for name in results) and "longfat" in results:
            title = best(results, library)
            print(
                f"longfat over the best {library} ({title}): {ratio(results['longfat'], results[title]):.2f}"
            )
    if options.peers or options.programs:
        return
    for program in (relay, lossy):
        print(f"\n{program.name}:", flush=True)
        subprocess.run([program], check=True)


if __name__ == "__main__":
    main()
