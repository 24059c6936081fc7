"""`longfat relay`: a path between real processes."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from tests.cli.conftest import Make, Receive, Refused, Start
from tests.conftest import Cli

from longfat import _native

NOWHERE = "127.0.0.1:9"


def test_a_file_arrives_over_a_lossy_path(start: Start, receive: Receive, place: Path, make: Make) -> None:
    _, address = receive()
    options = ("--loss", "2%", "--delay", "5ms", "--rate", "100Mbit/s", "--set", "reverse.loss=0%")
    relay = start("relay", "--listen", "127.0.0.1:0", "--to", address, *options, "--seed", 3, "--json")
    path = make("a.bin", 4_000_000)
    sender = start("send", path, relay.address(), "--json")
    assert sender.finish() == 0, sender.err
    assert (place / "a.bin").read_bytes() == path.read_bytes()
    sent = sender.document()
    assert sent["rtt_s"] > 0.01
    assert sent["retransmissions"] > 0
    assert relay.finish(signal.SIGINT) == 0
    reported = relay.document()
    forward, reverse = reported["forward"], reported["reverse"]
    # The last packet of the sender may still be in flight.
    under_way = forward["entered"] - forward["delivered"] - forward["lost"] - forward["queue_dropped"]
    assert 0 <= under_way <= 3
    assert 0.01 < forward["lost"] / forward["entered"] < 0.03
    assert reverse["lost"] == 0
    assert 1e6 < forward["rate_bps"] < 1.05e8
    assert reported["path"]["reverse"] == {"rate": "100Mbit/s", "delay": "5ms", "loss": "0%"}
    assert (reported["to"], reported["seed"], reported["clients"]) == (address, 3, 1)
    assert 0 < reported["late_p50_s"] <= reported["late_p99_s"]
    assert "Forward: " in relay.err
    assert "Reverse: " in relay.err


def test_the_output_has_the_path_and_a_table(start: Start, receive: Receive, make: Make) -> None:
    _, address = receive()
    relay = start("relay", "--listen", "127.0.0.1:0", "--to", address, "--preset", "lan", "--delay", "2ms")
    sender = start("send", make("a.bin", 100_000), relay.address())
    assert sender.finish() == 0
    assert relay.finish(signal.SIGTERM) == 0
    assert "Both directions: " in relay.err
    assert "rate 1Gbit/s" in relay.err
    assert "delay 2ms" in relay.err
    rows = {line[:24].strip(): line[24:].split() for line in relay.out.splitlines()}
    assert "forward" in relay.out
    assert rows["loss"] == ["0.00", "%", "0.00", "%"]
    assert int(rows["entered (packets)"][0]) >= 10
    assert "Delay error " in relay.out
    assert "1 client" in relay.out


def test_an_unused_relay_reports_no_datagrams(start: Start) -> None:
    relay = start("relay", "--listen", "127.0.0.1:0", "--to", NOWHERE)
    relay.wait_for("no delay, no loss")
    assert relay.finish(signal.SIGINT) == 0
    assert "0 clients" in relay.out


def test_a_closed_port_behind_the_relay_is_one_line_at_both(start: Start, make: Make) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
    relay = start("relay", "--listen", "127.0.0.1:0", "--to", closed)
    through = relay.address()
    sender = start("send", make("a.bin", 1000), through)
    assert sender.finish() == 1
    reported = "a relay reports that nothing listens at its target: start the receiver there"
    assert sender.err == f"longfat: {through}: {reported}\n"
    relay.wait_for(f"longfat: nothing listens at {closed}: datagrams are lost there")
    assert relay.finish(signal.SIGINT) == 0
    assert relay.err.count("nothing listens") == 1
    assert "refused by the server's machine, because nothing listened" in relay.out


def test_every_key_of_a_path_is_an_option(cli: Cli) -> None:
    text = cli("relay", "--help").stdout
    keys = json.loads(_native.vocabulary())["path"]["properties"]
    # A relay has one link per direction; the reverse direction has separate options.
    left_out = ("reverse", "hops")
    assert all(f"--{key.replace('_', '-')} " in text for key in keys if key not in left_out)
    text = cli("send", "--help").stdout
    families = json.loads(_native.vocabulary())["protocol"]["anyOf"]
    keys = next(family["properties"] for family in families if "gap_retransmit" in family["properties"])
    assert all(f"--{key.replace('_', '-')} " in text for key in keys if key != "kind")


@pytest.mark.parametrize(
    ("options", "code", "reported"),
    [
        ([], 2, ["--to: missing: write HOST:PORT of the server, or set --tcp, --socks or --http-connect"]),
        (["--to", "x"], 2, ['--to: "x" is not an address: write HOST:PORT']),
        (["--to", NOWHERE, "--listen", "192.0.2.1:0"], 1, ["cannot listen at 192.0.2.1:0: "]),
        (["--to", NOWHERE, "--listen", NOWHERE], 2, ["--to: 127.0.0.1:9 is also --listen"]),
        (["--to", NOWHERE, "--rate", "10"], 2, ['--rate: "10" has no unit']),
        (["--to", NOWHERE, "--loss", "2"], 2, ['--loss: "2" is not a probability: write it in percent']),
        (["--to", NOWHERE, "--loss", "200%"], 2, ['--loss: "200%" is out of range: 0% to 100%']),
        (["--to", NOWHERE, "--preset", "lann"], 2, ['--preset: "lann" is not known: did you mean "lan"?']),
        (["--to", NOWHERE, "--trace", "missing"], 2, ['trace: "missing": No such file']),
        (["--to", NOWHERE, "--trace", "2026-01-01"], 2, ['trace: "2026-01-01": No such file']),
        (["--to", NOWHERE, "--rate", "2026-01-01"], 2, ['--rate: "2026-01-01"']),
        (["--to", NOWHERE, "--set", "reverse.los=2%"], 2, ["--set: reverse.los: unknown key"]),
        (["--to", NOWHERE, "--set", "loss."], 2, ["write KEY=VALUE"]),
        (["--to", NOWHERE, "--set", "loss.=1"], 2, ["a part of the key is empty"]),
        (["--to", NOWHERE, "--loss", "2%", "--set", "loss.model=every"], 2, ['loss = "2%" is not a table']),
        (
            ["--to", NOWHERE, "--set", "reorder.probability=1%"],
            2,
            ["--set: reorder.delay: the key is missing"],
        ),
        (["--to", NOWHERE, "--mtu", "10B", "--delay", "61min"], 2, ["--delay: ", "--mtu: "]),
        (["--to", NOWHERE, "--seed", "-1"], 2, ["--seed"]),
    ],
)
def test_invalid_arguments_are_refused(
    options: list[str], code: int, reported: list[str], refused: Refused
) -> None:
    refused(["relay", *options], code, reported)
