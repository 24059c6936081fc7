"""The model of latency and bandwidth reproduces the examples of its source to the printed digits."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from longfat.analysis.theory import latency, transactions
from longfat.analysis.theory.latency import Hop
from longfat.analysis.transfer_time import Answer, Question, answer

T1, T3 = 1.544e6, 45e6
MS = 1e-3
AS_DRAWN = 1428 * 8 / 7.5e-3
"""Figure A.9 rounds a packet's 7.4 ms on a T1 line to 7.5 ms."""

Row = dict[str, str]


def _rows() -> list[Row]:
    lines = Path(__file__).with_name("network_time.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _bulk(rate: float, *, delay: float = 30 * MS) -> Answer:
    line = (Hop(rate, delay),)
    return answer(Question(line, line, 1_000_000, packet=1_000_000))


def _bandwidth(found: Answer) -> float:
    return found.seconds * found.share("bandwidth")


def _drawn(count: int = 1) -> Answer:
    hops = (Hop(AS_DRAWN, 5 * MS, 1 * MS), Hop(AS_DRAWN, 1 * MS, 1 * MS))
    return answer(Question(hops, hops[::-1], 1428 * count, packet=1428, receive=1 * MS))


def _first(rate: float, hops: int = 1) -> float:
    return latency.transit([Hop(rate)] * hops, 552)


def _ping(hops: list[Hop]) -> Answer:
    way = tuple(hops)
    return answer(Question(way, way[::-1], 1400, protocol="ping"))


def _across_the_country() -> list[Hop]:
    """Returns thirteen links with twelve routers of 0.5 ms each and a one-way delay of 40 ms.

    The source does not print the links. Six T1, three T3, two Ethernets and two of 100 Mbit/s give 187 ms, as
    do other combinations; T1 alone would give 284 ms.
    """
    rates = [T1] * 6 + [T3] * 3 + [10e6] * 2 + [100e6] * 2
    hops = [Hop(rate, 40 * MS / 13, 0.5 * MS) for rate in rates]
    return [replace(hops[0], processing=0.0), *hops[1:]]


def _fragmented() -> float:
    """Returns the increase in % if one more byte splits a packet and sending takes a quarter of the time."""
    one, two = (len(latency.fragments(size + 8, 1536)) for size in (1508, 1509))
    return 100 * 0.25 * (two - one)


def _transaction(protocol: str, round_trip: float, service: float) -> float:
    hops = (Hop(delay=round_trip / 2),)
    return answer(Question(hops, hops, 100, protocol=protocol, reply=100, service=service)).seconds


FORMS: dict[tuple[str, str], Callable[[], float]] = {
    ("bulk", "T1 total"): lambda: _bulk(T1).seconds,
    ("bulk", "T1 bandwidth"): lambda: _bandwidth(_bulk(T1)),
    ("bulk", "T3 total"): lambda: _bulk(T3).seconds / MS,
    ("bulk", "T3 bandwidth"): lambda: _bandwidth(_bulk(T3)) / MS,
    ("bulk", "155 total"): lambda: _bulk(155e6).seconds / MS,
    ("bulk", "155 bandwidth"): lambda: _bandwidth(_bulk(155e6)) / MS,
    ("store-and-forward", "delivered and processed"): lambda: _drawn().seconds / MS,
    # 1 + 7.5 + 5 + 1 + 7.5 + 1 + 1 = 24; some printings have 25, which is not the sum of the parts.
    ("store-and-forward", "end"): lambda: _drawn().seconds / MS,
    ("store-and-forward", "rate"): lambda: _drawn().figures["rate_bps"],
    ("store-and-forward", "rate without processing"): lambda: _drawn().figures["rate_without_processing_bps"],
    ("store-and-forward", "last of ten"): lambda: _drawn(10).seconds / MS,
    ("store-and-forward", "rate of ten"): lambda: _drawn(10).figures["rate_bps"],
    ("serialization", "56k"): lambda: _first(56e3) / MS,
    ("serialization", "T1"): lambda: _first(T1) / MS,
    ("serialization", "T3"): lambda: _first(T3) / MS,
    ("serialization", "ten T1"): lambda: _first(T1, 10) / MS,
    ("serialization", "ten T3"): lambda: _first(T3, 10) / MS,
    ("path", "naive"): lambda: _ping([Hop(T1, 40 * MS)]).figures["naive_rtt_s"] / MS,
    ("path", "with routers"): lambda: _ping(_across_the_country()).seconds / MS,
    ("path", "measured"): lambda: _ping(_across_the_country()).seconds / MS,
    ("segments", "tcp"): lambda: len(transactions.SEGMENTS["tcp"]),
    ("segments", "ttcp"): lambda: len(transactions.SEGMENTS["ttcp"]),
    # A ratio of 1.5 requires a service time of one round trip.
    ("loopback", "TCP against T/TCP"): lambda: (
        _transaction("tcp", 1 * MS, 1 * MS) / _transaction("ttcp", 1 * MS, 1 * MS)
    ),
    # The numbers of round trips are equal; the measured difference is processing in the hosts.
    ("loopback", "T/TCP against UDP"): lambda: (
        _transaction("ttcp", 1 * MS, 1 * MS) / _transaction("udp", 1 * MS, 1 * MS)
    ),
    ("loopback", "fragmentation"): _fragmented,
}


@pytest.mark.parametrize("row", _rows(), ids=lambda row: f"{row['example']} {row['case']}")
def test_every_example_matches_its_printed_digits(row: Row) -> None:
    expected = float(row["model"] or row["printed"])
    found = FORMS[row["example"], row["case"]]()
    assert round(found, int(row["places"])) == expected


def test_every_form_belongs_to_a_row() -> None:
    assert {(row["example"], row["case"]) for row in _rows()} == set(FORMS)


def test_the_estimate_is_near_the_measurement() -> None:
    """The model's 187 ms are within 5 % of the measured 193 ms; the naive estimate, 95 ms, is half of it."""
    (measured,) = (float(row["printed"]) for row in _rows() if row["case"] == "measured")
    found = _ping(_across_the_country())
    assert found.seconds / MS == pytest.approx(measured, rel=0.05)
    assert _ping([Hop(T1, 40 * MS)]).seconds / MS < measured / 2


@pytest.mark.parametrize("service", [0.0, 3 * MS])
def test_a_connection_costs_tcp_a_round_trip(service: float) -> None:
    """TCP takes two round trips plus the service time; T/TCP, Fast Open and UDP take one."""
    for protocol, trips in transactions.ROUND_TRIPS.items():
        assert _transaction(protocol, 10 * MS, service) == pytest.approx(trips * 10 * MS + service)


def test_the_last_bit_arrives_before_the_host_has_processed_it() -> None:
    found = _drawn()
    assert found.figures["last_bit_s"] == pytest.approx(23 * MS)
    assert {part.name: pytest.approx(part.seconds / MS) for part in found.parts} == {
        "propagation": 6.0,
        "processing": 3.0,
        "store and forward": 7.5,
        "sending at the slowest link": 7.5,
    }
