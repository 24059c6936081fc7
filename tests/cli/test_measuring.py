"""`longfat ping`, `longfat echo` and `longfat transact`: on loopback, and behind emulated paths."""

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
    """An echo server that runs."""

    running: Running

    @property
    def port(self) -> int:
        """Of UDP and TCP."""
        return int(self.running.address().rpartition(":")[2])

    def end(self, number: int = signal.SIGINT) -> dict[str, Any]:
        """Ends it and gives what it did."""
        assert self.running.ends(number) == 0
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
    # One more each over TFO and T/TCP, which make cookie and caches.
    assert (counts["connections"], counts["user_transactions"]) == (25, 25)


def test_an_echo_server_sums_up_in_a_line_when_it_ends(start: Start) -> None:
    server = start("echo", "--port", 0)
    assert server.address().startswith("127.0.0.1:")
    assert server.ends(signal.SIGINT) == 0
    assert server.out.startswith("Answered 0 datagrams and 0 connections")


@pytest.mark.usefixtures("emulated")
def test_round_trips_behind_a_path_are_twice_its_delay(cli: Cli) -> None:
    words = ["--count", 20, "--interval", "5ms", "--timeout", "30s", "--json"]
    # The far end is reported in the environment alone.
    line = " ".join(command("ping", "-4", *words)) + " $LONGFAT_PEER"
    (found,) = undisturbed(
        lambda: reported(cli("shell", "--delay", "20ms", "--", "sh", "-c", line))["sizes"],
        lambda sizes: sizes[0]["rtt_s"]["min"] < 0.050,
    )
    assert found["answered"] == 20
    least = found["rtt_s"]["min"]
    # No sooner than the path allows. How much later depends on the machine, but not for all of twenty.
    assert 0.040 <= least < 0.050, found


# The far end, with TCP Fast Open allowed there, and its server.
SERVE = "sh -c 'echo 3 > /proc/sys/net/ipv4/tcp_fastopen; exec {}'"


@pytest.mark.usefixtures("emulated")
def test_transactions_take_one_round_trip_or_two(cli: Cli) -> None:
    serve = SERVE.format(" ".join(command("echo", "--bind", "0.0.0.0")))
    words = ["--protocol", ",".join(PROTOCOLS), "--sizes", 1000, "--count", 5, "--interval", "0ms"]
    ask = " ".join(command("transact", *words, "--timeout", "30s", "--json"))
    # The server listens when a round trip to it is answered by itself, not by its kernel.
    knock = " ".join(command("ping", "--protocol", "udp", "--count", 1, "--timeout", "30s", "--json"))
    wait = f"until {knock} $LONGFAT_PEER | grep -q '\"closed\": 0'; do sleep 0.2; done"
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
    # What was lost or late might add to it; in the median nothing is.
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
def test_what_cannot_be_is_told_in_a_line(refused: Refused, words: tuple[str, ...], part: str) -> None:
    refused(list(words), 2, [part])
