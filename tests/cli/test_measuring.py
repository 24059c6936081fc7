"""`longfat ping`, `longfat echo` and `longfat transact` on loopback and over emulated paths."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.conftest import Refused, Running, Start
from tests.conftest import Cli, command
from tests.waiting import undisturbed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measurements need Linux")

PROTOCOLS = ("udp", "tcp", "tfo", "tcp-user", "ttcp")


@dataclass
class Echo:
    """A running echo server."""

    running: Running

    @property
    def port(self) -> int:
        """Returns the UDP and TCP port."""
        return int(self.running.address().rpartition(":")[2])

    def end(self, number: int = signal.SIGINT) -> dict[str, Any]:
        """Stops the server; returns its counters."""
        assert self.running.finish(number) == 0
        return self.running.document()


@pytest.fixture
def echo(start: Start) -> Echo:
    return Echo(start("echo", "--port", 0, "--json"))


def reported(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_round_trips_by_size_over_udp(cli: Cli, echo: Echo, tmp_path: Path) -> None:
    report, samples = tmp_path / "report.html", tmp_path / "samples.parquet"
    words = ["--protocol", "udp", "--port", echo.port, "--sizes", "8,100..500:100", "--count", 8]
    words += ["--interval", "1ms", "--timeout", "30s"]
    document = reported(cli("ping", "127.0.0.1", *words, "--json", "--out", report, "--samples", samples))
    assert [one["size"] for one in document["sizes"]] == [8, 100, 200, 300, 400, 500]
    for one in document["sizes"]:
        assert (one["sent"], one["answered"], one["loss"]["value"]) == (8, 8, 0.0)
        median = one["application_s"]["median"]
        assert median["low"] <= median["value"] <= median["high"]
    assert document["line"]["latency_s"]["value"] < 30
    frame = pl.read_parquet(samples)
    assert frame.height == 48
    assert frame["application_s"].min() > 0  # type: ignore[operator]
    assert "Round-trip times to 127.0.0.1" in report.read_text(encoding="utf-8")
    counts = echo.end()
    assert (counts["datagrams"], counts["malformed"]) == (48, 0)
    assert counts["sent"] == counts["received"]


def test_a_table_names_what_was_measured(cli: Cli, echo: Echo) -> None:
    words = ["--protocol", "tcp", "--port", echo.port, "--count", 6, "--interval", "1ms"]
    out = cli("ping", "127.0.0.1", *words).stdout
    assert "RTT min" in out.splitlines()[0]
    assert "measured by the kernel for each SYN" in out


def test_transactions_of_all_protocols(cli: Cli, echo: Echo, tmp_path: Path) -> None:
    samples = tmp_path / "transactions.csv"
    words = ["--port", echo.port, "--protocol", ",".join(PROTOCOLS), "--sizes", "8,1000", "--count", 6]
    words += ["--interval", "0ms", "--timeout", "30s", "--samples", samples]
    document = reported(cli("transact", "127.0.0.1", *words, "--json"))
    order = [(one["protocol"], one["size"]) for one in document["transactions"]]
    assert order == [(name, size) for name in PROTOCOLS for size in (8, 1000)]
    for one in document["transactions"]:
        assert (one["count"], one["failed"]) == (6, 0)
        assert one["application_s"]["value"] > 0
        if one["wire_s"]["value"] is not None:
            assert one["wire_s"]["value"] < one["application_s"]["value"]
            assert one["packets"] >= 2
    assert pl.read_csv(samples).height == 60
    counts = echo.end(signal.SIGTERM)
    assert counts["datagrams"] == 12
    # TFO and T/TCP have one more transaction each, for the cookie and the caches.
    assert (counts["connections"], counts["user_transactions"]) == (25, 25)


def test_an_echo_server_prints_a_summary_at_exit(start: Start) -> None:
    server = start("echo", "--port", 0)
    assert server.address().startswith("127.0.0.1:")
    assert server.finish(signal.SIGINT) == 0
    assert server.out.startswith("Answered 0 datagrams and 0 connections")


@pytest.mark.usefixtures("emulated")
def test_round_trips_behind_a_path_are_twice_its_delay(cli: Cli) -> None:
    words = ["--count", 20, "--interval", "5ms", "--timeout", "30s", "--json"]
    # Only the environment variable has the address of the far end.
    line = " ".join(command("ping", "-4", *words)) + " $LONGFAT_PEER"
    (found,) = undisturbed(
        lambda: reported(cli("shell", "--delay", "20ms", "--", "sh", "-c", line))["sizes"],
        lambda sizes: sizes[0]["rtt_s"]["min"] < 0.050,
    )
    assert found["answered"] == 20
    least = found["rtt_s"]["min"]
    # The minimum of twenty is near the path's delay even on a busy machine.
    assert 0.040 <= least < 0.050, found


# A server at the far end with TCP Fast Open.
SERVE = "sh -c 'echo 3 > /proc/sys/net/ipv4/tcp_fastopen; exec {}'"


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_transactions_take_one_round_trip_or_two(cli: Cli) -> None:
    serve = SERVE.format(" ".join(command("echo", "--bind", "0.0.0.0")))
    words = ["--protocol", ",".join(PROTOCOLS), "--sizes", 1000, "--count", 5, "--interval", "0ms"]
    ask = " ".join(command("transact", *words, "--timeout", "30s", "--json"))
    # A reply of the server itself, instead of its kernel, shows that it listens.
    probe = " ".join(command("ping", "--protocol", "udp", "--count", 1, "--timeout", "30s", "--json"))
    wait = f"until {probe} $LONGFAT_PEER | grep -q '\"closed\": 0'; do sleep 0.2; done"
    words = ["--delay", "20ms", "--server", serve, "--", "sh", "-c", f"{wait}; {ask} $LONGFAT_PEER"]
    found = undisturbed(
        lambda: {one["protocol"]: one for one in reported(cli("shell", *words))["transactions"]},
        lambda found: (
            found["ttcp"]["packets"] == 3
            and all(found[name]["application_s"]["value"] < 0.080 for name in ("udp", "tfo", "ttcp"))
        ),
    )
    assert [found[name]["failed"] for name in PROTOCOLS] == [0] * len(PROTOCOLS)
    for name in ("tcp", "tcp-user"):
        assert found[name]["application_s"]["value"] >= 0.080
    for name in ("udp", "tfo", "ttcp"):
        assert 0.040 <= found[name]["application_s"]["value"] < 0.080, found[name]
    assert found["tfo"]["syn_data"] == found["ttcp"]["syn_data"] == 5
    assert found["udp"]["packets"] == 2
    # The median excludes lost and late packets.
    assert found["ttcp"]["packets"] == 3
    assert found["tfo"]["packets"] < found["tcp"]["packets"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("ping", "127.0.0.1", "--sizes", "x"), "--sizes"),
        (("ping", "127.0.0.1", "--protocol", "tcp"), "--port"),
        (("ping", "127.0.0.1", "--protocol", "udp", "--sizes", "4"), "8 bytes"),
        (("ping", "no.such.host.invalid"), "no.such.host.invalid"),
        (("ping", "127.0.0.1", "--samples", "x.txt"), ".parquet"),
        (("ping", "127.0.0.1", "-4", "-6"), "-4"),
        (("transact", "127.0.0.1", "--protocol", "sctp"), "sctp"),
        (("transact", "127.0.0.1", "--sizes", "0"), "out of range"),
        (("echo", "--bind", "nowhere:"), "--bind"),
        (("echo", "--idle", "0s"), "--idle"),
    ],
)
def test_invalid_arguments_are_refused(refused: Refused, words: tuple[str, ...], part: str) -> None:
    refused(list(words), 2, [part])
