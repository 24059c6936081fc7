"""`longfat relay --tcp`: TCP connections between real processes."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import requirements
from tests.cli.conftest import Refused, Start
from tests.waiting import PATIENCE_S, wait_until

import longfat

NOWHERE = "127.0.0.1:9"


@contextmanager
def echo_server() -> Iterator[str]:
    """Yields the address of a server that returns each stream, and then its end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stopped = threading.Event()

        def answer(connection: socket.socket) -> None:
            with connection:
                try:
                    while data := connection.recv(65_536):
                        connection.sendall(data)
                except OSError:
                    return

        def serve() -> None:
            while not stopped.is_set():
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        stopped.set()


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def received(connection: socket.socket) -> bytes:
    parts = []
    while data := connection.recv(65_536):
        parts.append(data)
    return b"".join(parts)


def echoed(address: str, data: bytes) -> bytes:
    with connect(address) as connection:

        def write() -> None:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        found = received(connection)
        writer.join(PATIENCE_S)
        return found


def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_connections_of_several_pairs_share_a_lossy_path(start: Start) -> None:
    data = bytes(range(256)) * 4000
    with echo_server() as first, echo_server() as second:
        relay = start(
            "relay",
            *("--tcp", f"127.0.0.1:0={first}", "--tcp", f"127.0.0.1:0={second}"),
            *("--rate", "100Mbit/s", "--delay", "2ms", "--loss", "1%", "--congestion", "reno", "--json"),
        )
        for target in (first, second):
            assert echoed(relay.wait_for(rf"Listening on (\S+) for {target} \(TCP"), data) == data
        assert relay.finish(signal.SIGINT) == 0
    document = relay.document()
    assert (document["accepted"], document["completed"], document["reset"]) == (2, 2, 0)
    assert document["bytes_sent"] == document["bytes_received"] == 2 * len(data)
    assert document["forward"]["lost"] > 0
    assert document["forward"]["delay"]["p50_s"] > 0.002
    assert [one["target"] for one in document["listening"]] == [first, second]


def test_the_output_ends_with_a_table(start: Start) -> None:
    with echo_server() as target:
        relay = start("relay", "--tcp", f"127.0.0.1:0={target}", "--separate", "--delay", "1ms")
        assert echoed(relay.address(), b"hello") == b"hello"
        assert relay.finish(signal.SIGTERM) == 0
    assert "Both directions: delay 1ms" in relay.err
    assert "entered (packets)" in relay.out
    assert "Connections: 1 (1 completed, 0 reset); 0 retransmissions" in relay.out


def test_an_unreachable_target_is_one_line_and_others_continue(start: Start) -> None:
    closed = unused_address()
    with echo_server() as target:
        relay = start("relay", "--tcp", f"127.0.0.1:0={closed}", "--tcp", f"127.0.0.1:0={target}")
        broken = relay.wait_for(rf"Listening on (\S+) for {closed}")
        working = relay.wait_for(rf"Listening on (\S+) for {target}")
        with connect(working) as connection:
            connection.sendall(b"before")
            assert connection.recv(100) == b"before"
            for _ in range(3):
                # The reset can arrive before the connection is known to be open.
                with pytest.raises(ConnectionResetError), connect(broken) as refused:
                    refused.recv(1)
            connection.sendall(b"after")
            assert connection.recv(100) == b"after"
        relay.wait_for(
            f"longfat: {closed}: Connection refused; clients are reset, other connections continue"
        )
        assert relay.finish(signal.SIGINT) == 0
    assert relay.err.count("Connection refused") == 1
    assert "3 without a reachable target" in relay.out


def test_a_target_that_resets_during_a_transfer_resets_its_client_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, echo_server() as other:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        pairs = [f"127.0.0.1:0={target}", f"127.0.0.1:0={other}"]
        with longfat.relay({"delay": "2ms"}, tcp=pairs) as relay, connect(relay.addresses[1]) as beside:
            beside.sendall(b"before")
            assert beside.recv(100) == b"before"
            with connect(relay.address) as client:
                client.sendall(b"x" * 100_000)
                server = listener.accept()[0]
                server.recv(1)
                server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                server.close()
                with pytest.raises(ConnectionResetError):
                    received(client)
            beside.sendall(b"after")
            assert beside.recv(100) == b"after"
            wait_until(lambda: relay.report["reset"] == 1)


def test_the_end_of_the_relay_is_a_reset() -> None:
    with (
        echo_server() as target,
        longfat.relay({}, target, tcp=True) as relay,
        connect(relay.address) as client,
    ):
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        report = relay.stop()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert (report["accepted"], report["open"]) == (1, 1)


def test_the_path_changes_while_a_connection_uses_it() -> None:
    with echo_server() as target, longfat.relay({"delay": "1ms"}, target, tcp=True) as relay:
        with connect(relay.address) as client:
            client.sendall(b"a")
            assert client.recv(1) == b"a"
            relay.drop_next(2, "forward")
            client.sendall(b"b")
            assert client.recv(1) == b"b"
            assert (relay.report["forward"]["lost"], relay.report["reverse"]["lost"]) == (2, 0)
            assert relay.set({"delay": "30ms", "reverse.loss": "50%"})["reverse"] == {
                "delay": "30ms",
                "loss": "50%",
            }
            with pytest.raises(ValueError, match=r'loss: "200%" is out of range'):
                relay.set({"loss": "200%"})
            for fixed in (
                {"down": ["1s..2s"]},
                {"reverse": {"down": ["1s..2s"]}},
                {"reverse.down": ["1s..2s"]},
            ):
                with pytest.raises(ValueError, match="down: scheduled at the start only: start an outage"):
                    relay.set(fixed)
            with pytest.raises(ValueError, match="wifi: part of the relay from its start"):
                relay.set({"wifi": {"rate": "50Mbit/s"}})
            with pytest.raises(ValueError, match="nat: not in longfat relay --tcp"):
                relay.set({"nat": {"timeout": "5s"}})
            with pytest.raises(ValueError, match=r"reverse\.queue\.ack_filter: not in longfat relay --tcp"):
                relay.set({"rate": "9Mbit/s", "reverse.queue": {"kind": "cake", "ack_filter": True}})
            assert relay.settings == {"delay": "30ms", "reverse": {"loss": "50%"}}
            relay.set({"reverse": None})
            client.sendall(b"c")
            assert client.recv(1) == b"c"
            assert relay.report["forward"]["delay"]["max_s"] > 0.03
            relay.start_outage("300ms")
            client.sendall(b"d")
            assert client.recv(1) == b"d"
            assert relay.report["forward"]["outage_dropped"] > 0
            relay.reset_connections()
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        report = relay.stop()
        with pytest.raises(OSError, match="the relay has stopped"):
            relay.set({"loss": "1%"})
    assert report["reset"] == 1


def test_a_schedule_changes_the_path(tmp_path: Path) -> None:
    file = tmp_path / "schedule.toml"
    file.write_text(
        '[[schedule]]\nat = "50ms"\nset = { delay = "25ms" }\n\n'
        '[[schedule]]\nat = "10ms"\ndrop = 2\ndirection = "reverse"\n'
    )
    with echo_server() as target, longfat.relay({}, target, tcp=True, schedule=file) as relay:
        wait_until(lambda: relay.settings == {"delay": "25ms"})
        assert echoed(relay.address, b"hello") == b"hello"
        assert relay.report["reverse"]["lost"] == 2


def test_a_change_of_a_schedule_that_fails_is_one_line(start: Start, tmp_path: Path) -> None:
    trace = tmp_path / "rate.trace"
    trace.write_text("1\n")
    file = tmp_path / "schedule.toml"
    file.write_text(
        f'[[schedule]]\nat = "1s"\nset = {{ trace = "{trace}" }}\n\n'
        '[[schedule]]\nat = "1010ms"\nset = { trace = "missing.trace" }\n'
    )
    relay = start("relay", "--tcp", f"127.0.0.1:0={NOWHERE}", "--schedule", file, "--json")
    relay.wait_for("longfat: schedule at 1.01 s: .*missing.trace")
    assert relay.err.count("schedule at") == 1
    assert relay.finish(signal.SIGINT) == 0


def test_udp_uses_the_same_path() -> None:
    with (
        echo_server() as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        target.bind(("127.0.0.1", 0))
        target.settimeout(PATIENCE_S)
        client.settimeout(PATIENCE_S)
        udp = "127.0.0.1:0={}:{}".format(*target.getsockname())
        with longfat.relay({"delay": "2ms"}, tcp=f"127.0.0.1:0={server}", udp=udp) as relay:
            assert [pair.transport for pair in relay.pairs] == ["TCP", "UDP"]
            host, _, port = relay.addresses[1].rpartition(":")
            client.sendto(b"there", (host, int(port)))
            data, address = target.recvfrom(100)
            target.sendto(data + b" and back", address)
            assert client.recv(100) == b"there and back"
            assert [relay.report[side]["entered"] for side in ("forward", "reverse")] == [1, 1]
            relay.drop_next(1, "forward")
            client.sendto(b"lost", (host, int(port)))
            wait_until(lambda: relay.report["forward"]["lost"] == 1)
            with connect(relay.address) as connection:
                connection.sendall(b"a")
                assert connection.recv(1) == b"a"
            report = relay.report
            assert (report["udp_clients"], report["udp_dropped"], report["accepted"]) == (1, 0, 1)


def test_a_removed_outage_of_the_start_is_refused() -> None:
    path = {"delay": "1ms", "reverse": {"down": ["100s..200s"]}}
    with longfat.relay(path, NOWHERE, tcp=True) as relay:
        for change in ({"reverse": None}, {"reverse.down": None}, {"reverse": {"delay": "2ms"}}):
            with pytest.raises(ValueError, match=r"reverse\.down: scheduled at the start only"):
                relay.set(change)
        assert relay.settings == path
        relay.set({"reverse.delay": "2ms"})


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("x = 1", "entries [[schedule]] and nothing else"),
        ('[[schedule]]\nat = "1s"', "schedule.1: write at and one of set, outage, drop, reset"),
        ('[[schedule]]\nat = "1"\ndrop = 1', 'schedule.1: at: "1" is not a duration'),
        ('[[schedule]]\nat = "1s"\ndrop = 0', "schedule.1: drop: 0 is out of range"),
        ('[[schedule]]\nat = "1s"\ndorp = 1', "schedule.1: dorp: unknown key"),
        ('[[schedule]]\nat = "1s"\nset = { loss = "200%" }', 'schedule.1: path.loss: "200%" is out of range'),
        (
            (
                '[[schedule]]\nat = "2s"\nset = { "reverse.loss.rate" = "1%" }\n'
                '[[schedule]]\nat = "1s"\nset = { reverse = { down = ["1s..2s"] } }'
            ),
            "schedule.2: reverse.down: scheduled at the start only",
        ),
        ('[[schedule]]\nat = "1s"\nreset = true\ndirection = "forward"', "schedule.1: direction"),
    ],
)
def test_a_wrong_schedule_is_refused(text: str, reported: str, tmp_path: Path) -> None:
    file = tmp_path / "schedule.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match="schedule") as caught:
        longfat.relay({}, NOWHERE, tcp=True, schedule=file)
    assert str(caught.value).startswith(str(file))
    assert reported in str(caught.value)


@pytest.mark.slow
def test_commands_change_a_running_relay(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_RELAY_TOKEN", "secret")
    with echo_server() as target:
        relay = start("relay", "--tcp", f"127.0.0.1:0={target}", "--control", "127.0.0.1:0", "--delay", "1ms")
        control = relay.wait_for(r"Control: http://(\S+)")
        changed = start("relay", "set", "loss=2%", "reverse.loss=0%", "--control", control)
        assert changed.finish() == 0, changed.err
        assert changed.document()["settings"] == {"delay": "1ms", "loss": "2%", "reverse": {"loss": "0%"}}
        assert start("relay", "drop", "1", "reverse", "--control", control).finish() == 0
        assert echoed(relay.address(), b"hello") == b"hello"
        shown = start("relay", "report", "--control", control)
        assert shown.finish() == 0
        assert shown.document()["reverse"]["lost"] == 1
        wrong = start("relay", "set", "loss=2%", "--token", "other", "--control", control)
        wrong.fails_with("wrong token", code=2)
        start("relay", "set", "los=2%", "--control", control).fails_with("los: unknown key", code=2)
        start("relay", "stop", "--control", control).fails_with("stop: unknown action", code=2)
        start("relay", "outage", "--control", control).fails_with("outage: wrong arguments", code=2)
        assert relay.finish(signal.SIGINT) == 0
    start("relay", "report", "--control", control).fails_with(f"no relay with --control at {control}")


@pytest.mark.parametrize(
    ("options", "code", "reported"),
    [
        (["--tcp", NOWHERE], 2, [f'--tcp: "{NOWHERE}": write LISTEN=TARGET']),
        (["--tcp", f"{NOWHERE}={NOWHERE}"], 2, ["is both ends"]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--to", NOWHERE], 2, ["--to: not with --tcp"]),
        (["--tcp", f"192.0.2.1:0={NOWHERE}"], 1, ["cannot listen at 192.0.2.1:0: "]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--congestion", "cubik"], 2, ['did you mean "cubic"?']),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--tcp-set", "min_rto=1"], 2, ["min_rto"]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--tcp-set", "stack=kernel"], 2, ["stack"]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--schedule", "missing.toml"], 1, ["missing.toml"]),
        (["--congestion", "bbr"], 2, ["--tcp: missing"]),
        (["--to", NOWHERE, "--separate"], 2, ["--separate: for TCP only"]),
        (["--udp", f"127.0.0.1:0={NOWHERE}"], 2, ["--tcp: missing"]),
        (["--socks", "127.0.0.1:0", "--udp", NOWHERE], 2, ["--udp: "]),
        *(
            (
                ["--socks", "127.0.0.1:0", "--udp", f"{listen}={NOWHERE}"],
                2,
                [f'--udp: "{listen}": write one address of this machine'],
            )
            for listen in ("0.0.0.0:0", "[::]:0", "0:9001")
        ),
        (["set", "loss=2%"], 2, ["--token: missing"]),
        (["set", "loss", "--token", "x"], 2, ['set: "loss": write KEY=VALUE, e.g. loss=2%']),
        (["--socks", "127.0.0.1:0", "--tcp-set", "cubic"], 2, ['"cubic": write KEY=VALUE, e.g. min_rto=1s']),
        (["set", "loss=2%", "--delay", "20ms"], 2, ["--delay: not with set"]),
        (["drop", "3", "--set", "loss=2%"], 2, ["--set: not with drop"]),
        (["report", "--seed", "1"], 2, ["--seed: not with report"]),
        (["report", "--json"], 2, ["--json: not with report"]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--token", "x"], 2, ["--token: it is the token of --control"]),
        (["--tcp", f"127.0.0.1:0={NOWHERE}", "--listen", "127.0.0.1:0"], 2, ["--listen: not with --tcp"]),
        (["--socks", "127.0.0.1:0", "--listen", "127.0.0.1:0"], 2, ["--listen: not with --tcp"]),
        (
            ["--socks", "127.0.0.1:0", "--control", "0.0.0.0:0"],
            2,
            ['--control: "0.0.0.0:0": must be an IPv4 address on loop'],
        ),
        (
            ["--socks", "127.0.0.1:0", "--control", "[::1]:0"],
            2,
            ['--control: "[::1]:0": must be an IPv4 address on loop'],
        ),
        (["--socks", "127.0.0.1:0", "--set", "nat.timeout=5s"], 2, ["path.nat: not in longfat relay --tcp"]),
        (
            [
                *["--socks", "127.0.0.1:0", "--rate", "9Mbit/s", "--set"],
                'reverse.queue={kind="cake",ack_filter=true}',
            ],
            2,
            ["path.reverse.queue.ack_filter: not in longfat relay --tcp"],
        ),
    ],
)
def test_invalid_arguments_are_refused(
    options: list[str], code: int, reported: list[str], refused: Refused
) -> None:
    refused(["relay", *options], code, reported)


def test_a_port_in_use_is_one_line(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(
            ["relay", "--tcp", f"{address}={NOWHERE}"],
            1,
            [f"cannot listen at {address}: Address already in use"],
        )
        arguments = ["relay", "--tcp", f"127.0.0.1:0={NOWHERE}", "--control", address]
        refused(arguments, 1, [f"cannot listen at {address}: Address already in use"])


def test_a_limit_of_files_without_room_for_a_connection_is_one_line() -> None:
    relay = f"exec {sys.executable} -m longfat relay --tcp 127.0.0.1:0={NOWHERE}"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 65; {relay}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "longfat: the limit of 65 open files allows no connection: raise it to at least 66 (ulimit -n)\n"
    )


def test_a_stalled_reader_stalls_the_writer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"127.0.0.1:{listener.getsockname()[1]}"
        with longfat.relay({}, target, tcp=True) as relay, connect(relay.address) as client:
            server = listener.accept()[0]
            client.settimeout(1.0)
            sent = 0
            is_stalled = False
            while not is_stalled and sent < 200_000_000:
                try:
                    sent += client.send(bytes(1_000_000))
                except TimeoutError:
                    is_stalled = True
            assert is_stalled
            count = 0
            client.settimeout(PATIENCE_S)
            client.shutdown(socket.SHUT_WR)
            while data := server.recv(1_000_000):
                count += len(data)
            assert count == sent
            server.close()


def test_the_api_rejects_parameters_of_the_other_transport() -> None:
    with pytest.raises(ValueError, match="separate: for TCP only"):
        longfat.relay({}, NOWHERE, separate=True)
    with pytest.raises(ValueError, match='protocol: "udp"'):
        longfat.relay({}, NOWHERE, tcp=True, protocol={"kind": "udp"})
    with pytest.raises(ValueError, match="token"):
        longfat.relay({}, NOWHERE, tcp=True, token="x")
    empties: list[str | list[str]] = [[], ""]
    for empty in empties:
        with pytest.raises(ValueError, match=r"^tcp: "):
            longfat.relay({}, tcp=empty)
    with pytest.raises(ValueError, match=r"^udp: with tcp, socks or http_connect only"):
        longfat.relay({}, NOWHERE, udp=f"127.0.0.1:0={NOWHERE}")
    with pytest.raises(ValueError, match=r"^listen: not with tcp"):
        longfat.relay({}, tcp=[f"127.0.0.1:0={NOWHERE}"], listen="127.0.0.1:0")
    report = json.dumps(longfat.relay({}, NOWHERE, tcp=True).stop())
    assert '"accepted": 0' in report


@pytest.mark.slow
def test_a_capture_has_the_packets_at_both_ends_of_the_path(tmp_path: Path) -> None:
    file = tmp_path / "path.pcapng"
    data = bytes(2_000_000)
    with (
        echo_server() as target,
        longfat.relay(
            {"rate": "50Mbit/s", "delay": "5ms", "loss": "1%"}, target, tcp=True, pcapng=file
        ) as relay,
    ):
        assert echoed(relay.address, data) == data
        report = relay.stop()
    packets = sum(report[side][key] for side in ("forward", "reverse") for key in ("entered", "delivered"))
    assert report["capture"] == {"packets": packets, "missing": 0}

    explained = longfat.explain(file).document
    assert len(explained["connections"]) == 1
    (connection,) = explained["connections"]
    assert (connection["client"].split(":")[0], connection["server"].split(":")[0]) == (
        "10.1.0.0",
        "10.0.0.2",
    )
    assert connection["has_handshake"]
    assert [direction["bytes"] for direction in connection["directions"]] == [len(data)] * 2
    assert all(direction["random_loss_packets"] > 0 for direction in connection["directions"])

    if shutil.which("tshark") is None:
        requirements.skip("programs", "tshark is not installed")
    fields = ("frame.interface_name", "ip.src", "tcp.checksum.status")
    command = ["tshark", "-r", str(file), "-o", "tcp.check_checksum:TRUE", "-Y", "tcp && !_ws.malformed"]
    command += ["-T", "fields", *(part for field in fields for part in ("-e", field))]
    found = Counter(
        subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    )
    forward, reverse = report["forward"], report["reverse"]
    # Status 1: the checksum is right.
    assert found == {
        "clients\t10.1.0.0\t1": forward["entered"],
        "targets\t10.1.0.0\t1": forward["delivered"],
        "targets\t10.0.0.2\t1": reverse["entered"],
        "clients\t10.0.0.2\t1": reverse["delivered"],
    }


@pytest.mark.slow
def test_the_capture_of_a_command_can_be_explained(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "path.pcapng"
    with echo_server() as target:
        relay = start("relay", "--tcp", f"127.0.0.1:0={target}", "--delay", "1ms", "--pcapng", file, "--json")
        assert echoed(relay.address(), b"hello") == b"hello"
        assert relay.finish(signal.SIGINT) == 0
    assert relay.document()["capture"]["missing"] == 0
    explained = start("explain", file)
    assert explained.finish() == 0, explained.err
    assert "10.1.0.0" in explained.out


def test_a_capture_that_cannot_be_written_is_one_line(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "path.pcapng"
    arguments = ["relay", "--socks", "127.0.0.1:0", "--pcapng", str(file)]
    refused(arguments, 1, [f"cannot write {file}: No such file or directory"])
    refused(["relay", "--to", NOWHERE, "--pcapng", str(file)], 2, ["--pcapng: for TCP only"])
