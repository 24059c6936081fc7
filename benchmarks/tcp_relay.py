"""The TCP relay: goodput compared with kernels, delay, throughput and memory.

    cargo build --release -p longfat-proxy --example relay
    python benchmarks/tcp_relay.py goodput delay throughput memory

Goodput: one file over a path with 1 % loss and an RTT of 50 ms, for Reno, CUBIC and BBR version 1,
through the relay and between two kernels in world netns (`longfat doctor netns tun`). Several trials of
the relay run at the same time, each on its own path.

Delay: round trips of 64 bytes through the relay without impairments, minus those of a direct connection;
half of the difference is the added delay of one direction. Throughput: one connection, with a process at
both ends. Memory: the resident set of a relay with idle connections, each of which has carried a byte
both ways.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import longfat as lf

PATH = {"rate": "100Mbit/s", "delay": "25ms", "loss": "1%", "queue": "416pkt"}
CONTROLLERS = {"reno": 12, "cubic": 12, "bbr1": 2}
"""Controllers, with the transfers at the same time: two of BBR need as much time as twelve others."""
RELAY = Path("target/release/examples/relay")


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def relayed_goodput(controller: str, size: int, trials: int, seed: int) -> list[float]:
    """Returns the goodput of transfers at the same time, in bit/s."""
    found: list[float] = []
    tcp = {"kind": "tcp", "congestion": controller}
    with (
        socket.create_server(("127.0.0.1", 0), backlog=trials) as listener,
        released("{}:{}".format(*listener.getsockname()), PATH, tcp, seed) as (relay, _),
    ):

        def send() -> None:
            data = bytes(size)
            start = time.monotonic()
            with socket.create_connection(relay) as client:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                client.recv(1)
            # The end of the target's stream needs half a round trip back.
            found.append(size * 8 / (time.monotonic() - start - 0.025))

        def receive(connection: socket.socket) -> None:
            with connection:
                while connection.recv(1 << 20):
                    pass

        senders = [threading.Thread(target=send) for _ in range(trials)]
        for sender in senders:
            sender.start()
        receivers = []
        for _ in range(trials):
            receivers.append(threading.Thread(target=receive, args=(listener.accept()[0],)))
            receivers[-1].start()
        for thread in (*receivers, *senders):
            thread.join()
    return found


def goodput(trials: int, size: int) -> None:
    study = {
        "title": "Goodput between kernels",
        "path": PATH,
        "workload": {"kind": "file", "size": f"{size}B"},
        "protocols": [{"name": name, "kind": "tcp", "congestion": name} for name in CONTROLLERS],
    }
    between = lf.sweep(study, seeds=trials, worlds=["netns"])
    simulated = lf.sweep(study, seeds=10 * trials)
    print(f"{size:,} bytes, {trials} trials, {2 * trials} of the relay, {10 * trials} of sim, {PATH}")
    for controller, most in CONTROLLERS.items():
        own: list[float] = []
        while len(own) < 2 * trials:
            at_once = min(most, 2 * trials - len(own))
            own += relayed_goodput(controller, size, at_once, len(own) + 1)
        mean = {
            name: next(cell for cell in run.cells if cell.cell.protocol == controller).samples["goodput_bps"]
            for name, run in (("netns", between), ("sim", simulated))
        }
        texts = []
        for name, values in {"relay": own, **mean}.items():
            error = statistics.stdev(values) / len(values) ** 0.5
            texts.append(f"{name} {statistics.mean(values) / 1e6:.2f} ±{2 * error / 1e6:.2f} Mbit/s")
        ratios = (statistics.mean(own) / statistics.mean(mean[name]) for name in ("netns", "sim"))
        shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{controller}: {', '.join(texts)}; relay / netns, relay / sim {shown}", flush=True)


@contextmanager
def released(
    target: str,
    path: dict[str, str] | None = None,
    tcp: dict[str, str] | None = None,
    seed: int = 1,
) -> Iterator[tuple[tuple[str, int], int]]:
    """Yields the address and the process of a relay; without impairments by default."""
    options = [json.dumps(path or {}), json.dumps(tcp or {"kind": "tcp"}), str(seed)]
    process = subprocess.Popen(
        [RELAY, "127.0.0.1:0", target, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield address(process.stdout.readline().strip()), process.pid
    process.communicate()


@contextmanager
def forked(serve: object, *arguments: object) -> Iterator[None]:
    """Runs a function in a child process."""
    child = os.fork()
    if child == 0:
        serve(*arguments)  # type: ignore[operator]
        os._exit(0)
    yield
    os.kill(child, 9)
    os.waitpid(child, 0)


def echo(listener: socket.socket) -> None:
    while True:
        connection = listener.accept()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    while data := connection.recv(65_536):
        connection.sendall(data)


def sink(listener: socket.socket) -> None:
    while True:
        connection = listener.accept()[0]
        buffer = bytearray(1 << 20)
        while connection.recv_into(buffer):
            pass
        connection.sendall(b".")


def round_trips(to: tuple[str, int], count: int) -> list[float]:
    with socket.create_connection(to) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            client.sendall(bytes(64))
            received = 0
            while received < 64:
                received += len(client.recv(64))
            times.append(time.perf_counter() - begin)
        return times


def delay(count: int = 3000) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, forked(echo, listener):
        to = listener.getsockname()
        with released("{}:{}".format(*to)) as (through, _):
            pairs = [(round_trips(to, count // 10), round_trips(through, count // 10)) for _ in range(10)]
    direct = statistics.median(time for pair in pairs for time in pair[0])
    relayed = statistics.median(time for pair in pairs for time in pair[1])
    added = (relayed - direct) / 2
    print(f"round trip: direct {direct * 1e6:.0f} µs, through the relay {relayed * 1e6:.0f} µs (medians)")
    print(
        f"added delay: {added * 1e6:.0f} µs per direction, {added * 2e6:.0f} µs per round trip (limit 150 µs)"
    )


def transferred(to: tuple[str, int], size: int) -> float:
    block = bytes(1 << 20)
    with socket.create_connection(to) as client:
        begin = time.perf_counter()
        for _ in range(size >> 20):
            client.sendall(block)
        client.shutdown(socket.SHUT_WR)
        client.recv(1)
        return size * 8 / (time.perf_counter() - begin)


def throughput(size: int = 1 << 30) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, forked(sink, listener):
        to = listener.getsockname()
        with released("{}:{}".format(*to)) as (through, pid):
            ticks = os.sysconf("SC_CLK_TCK")
            before = used(pid)
            rates = [transferred(through, size) for _ in range(3)]
            spent = (used(pid) - before) / ticks
            direct = transferred(to, size)
    whole = 3 * size * 8
    print(f"relay {max(rates) / 1e9:.2f} Gbit/s (best of 3), direct {direct / 1e9:.2f} Gbit/s")
    print(
        f"processor time of the relay: {spent:.2f} s for {whole / 1e9:.1f} Gbit: "
        f"{whole / spent / 1e9:.2f} Gbit/s per core"
    )


def used(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def resident(pid: int, key: str = "VmRSS") -> float:
    """Returns the resident set of a process now, or its largest one (VmHWM), in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def memory(connections: int = 5000) -> None:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:  # noqa: SIM117 - its address
        with released("{}:{}".format(*listener.getsockname())) as (through, pid):
            empty = resident(pid)
            clients, servers = [], []
            for _ in range(connections):
                clients.append(socket.create_connection(through))
                servers.append(listener.accept()[0])
                clients[-1].sendall(b"a")
                servers[-1].sendall(servers[-1].recv(1))
                clients[-1].recv(1)
            idle = resident(pid)
            for client in clients:
                client.sendall(bytes(65_536))
            for server in servers:
                received = 0
                while received < 65_536:
                    received += len(server.recv(65_536))
            busy, most = resident(pid), resident(pid, "VmHWM")
    each = (idle - empty) / connections * 1024
    print(
        f"{connections:,} connections: {idle:.0f} MiB ({each:.1f} KiB each), "
        f"{busy:.0f} MiB after 64 KiB on each, at most {most:.0f} MiB (limit 500 MiB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=("goodput", "delay", "throughput", "memory"))
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--size", type=int, default=3_000_000)
    given = parser.parse_args()
    for what in given.what:
        if what == "goodput":
            goodput(given.trials, given.size)
        else:
            {"delay": delay, "throughput": throughput, "memory": memory}[what]()


if __name__ == "__main__":
    main()
