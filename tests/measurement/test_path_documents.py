"""Documents, models and stored samples of measured paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.known_path import SIZES, Truth

from longfat.analysis.inference.links import infer
from longfat.analysis.inference.samples import Samples
from longfat.measurement.path import Progress
from longfat.measurement.path_document import document, hops, measured
from longfat.measurement.path_samples import SampleFile
from longfat.presentation.measured.links import table
from longfat.study.path_model import PathModel, read, write
from longfat.study.units import parse

ABOUT = {"host": "example", "address": "10.0.0.3", "protocol": "icmp", "when": "2026-11-22T00:00:00+00:00"}
TRUTH = Truth([10e6, 100e9, 20e6], [2e-3, 3e-3, 1e-3], reverse=[10e6, 100e9, 1e6])

ECHOED = Truth([10e6, 20e6, 50e6], [2e-3, 3e-3, 1e-3])


def _document(samples: Samples) -> dict[str, Any]:
    return document(Progress(samples, infer(samples), 16, ended_by="rounds"), ABOUT)


def test_a_model_is_built_from_a_document(tmp_path: Path) -> None:
    reported = _document(TRUTH.samples(2, 16))
    assert json.loads(json.dumps(reported)) == reported
    assert (reported["host"], reported["reached"], reported["clock"]) == ("example", True, "kernel")
    assert [hop["ttl"] for hop in reported["hops"]] == [1, 2, 3]
    write(tmp_path / "model.toml", PathModel({"hops": hops(reported)}, measured(reported)))
    model = read(tmp_path / "model.toml")
    first, fast, last = model.path["hops"]
    assert float(parse(first["rate"]).value) == pytest.approx(10e6, rel=0.05)
    assert float(parse(first["delay"]).value) == pytest.approx(2e-3, abs=50e-6)
    assert set(fast) == {"delay"}
    assert "loss" not in first
    assert float(parse(last["reverse"]["rate"]).value) == pytest.approx(1e6, rel=0.05)
    assert [hop["ttls"] for hop in model.measured["hops"]] == [[1], [2], [3]]
    assert float(parse(model.measured["hops"][1]["rate_at_least"]).value) > 100e6


def _rows(reported: dict[str, Any]) -> list[Sequence[str]]:
    """Returns the rows of the table, the header first."""
    made = table(reported)
    return [made.head, *made.rows]


def _lossy(samples: Samples, ttl: int, kept: float) -> Samples:
    """Keeps this share of the replies of a router and of those after it."""
    random = np.random.default_rng(7)
    for router in samples.routers.values():
        if router.ttl >= ttl:
            router.answered = int(random.binomial(router.sent, kept))
    return samples


def test_a_model_has_the_loss_and_a_queue_of_each_link(tmp_path: Path) -> None:
    reported = _document(_lossy(ECHOED.samples(2, 64, echo=True), 2, 0.96))
    hop_losses = [hop["link"]["loss_each_way"] for hop in reported["hops"]]
    assert hop_losses == pytest.approx([0.0, 0.02, 0.0], abs=0.006)
    write(tmp_path / "model.toml", PathModel({"hops": hops(reported)}, measured(reported)))
    model = read(tmp_path / "model.toml")
    lost = [float(parse(hop.get("loss", "0%")).value) for hop in model.path["hops"]]
    assert lost == pytest.approx(hop_losses, abs=1e-5)
    low, high = (float(parse(text).value) for text in model.measured["hops"][1]["loss_round_trip"])
    assert low < 0.04 < high
    # One RTT at 20 Mbit/s: 12 ms of delays plus transmission times.
    assert 30_000 <= float(parse(model.path["hops"][1]["queue"]).value) < 60_000
    assert any("assumed equal in both directions" in line for line in model.measured["assumptions"])
    assert any("assumed limit" in line for line in model.measured["assumptions"])


def test_a_loss_that_fits_two_links_is_reported_for_both_together(tmp_path: Path) -> None:
    samples = ECHOED.samples(2, 16, echo=True)
    for ttl, sent, answered in ((1, 100, 100), (2, 200, 197), (3, 200, 197)):
        samples.routers[ttl].sent, samples.routers[ttl].answered = sent, answered
    reported = _document(samples)
    assert [hop["link"]["loss_ttls"] for hop in reported["hops"]] == [None, [1, 2], [3, 3]]
    rows = _rows(reported)
    assert rows[1][6] == "with link 2"
    assert rows[2][-1] == "loss of links 1 to 2 together"
    model = measured(reported)
    assert [hop.get("loss_ttls") for hop in model["hops"]] == [None, [1, 2], None]
    write(tmp_path / "model.toml", PathModel({"hops": hops(reported)}, model))
    assert ["loss" in hop for hop in read(tmp_path / "model.toml").path["hops"]] == [False, True, False]


def test_a_host_that_limits_its_answers_to_udp_loses_nothing() -> None:
    """With UDP, missing replies of the end are no loss; the document reports the loss as unknown."""
    reported = _document(_lossy(ECHOED.samples(2, 64), 3, 0.6))
    assert [hop["link"]["loss_each_way"] for hop in reported["hops"]] == [0.0, 0.0, None]
    assert reported["hops"][2]["limits_answers"]
    assert any(line.startswith("Loss: unknown after hop 2") for line in reported["assumptions"])
    assert all("loss" not in hop for hop in hops(reported))


def test_the_table_names_unknown_properties() -> None:
    rows = _rows(_document(TRUTH.samples(2, 16)))
    assert len(rows) == 4
    assert rows[2][5].startswith("unknown, above ")
    assert "reverse 1.0" in rows[3][-1] or "reverse 99" in rows[3][-1]


def test_changing_routes_are_reported() -> None:
    """The router that replies more often is used; both are named."""
    samples = TRUTH.samples(2, 16)
    other = Truth([10e6, 1e6, 20e6], [2e-3, 9e-3, 1e-3])
    random = np.random.default_rng(5)
    for size in SIZES:
        probe = other.sample(random, 2, size)
        samples.add([probe | {"answer": probe["answer"] | {"from": "10.9.9.9"}}])
    reported = _document(samples)
    assert reported["hops"][1]["addresses"] == {"10.0.0.2": 16 * len(SIZES), "10.9.9.9": len(SIZES)}
    assert reported["hops"][1]["address"] == "10.0.0.2"
    assert reported["hops"][1]["link"]["latency_s"]["value"] == pytest.approx(3e-3, abs=50e-6)
    assert "several routes" in _rows(reported)[2][-1]


def test_a_router_that_never_answers_has_a_row() -> None:
    samples = TRUTH.samples(2, 16)
    del samples.routers[2]
    lost = {"ttl": 2, "size": 100, "answer": None, "kernel_s": None, "application_s": None}
    samples.add([lost] * 3)
    rows = _rows(_document(samples))
    assert rows[2][:3] == ["2", "*", "100.0%"]
    assert "hops 2 to 3 as one" in rows[3][-1]


def test_samples_are_stored_and_a_truncated_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    about = {"host": "example", "protocol": "icmp"}
    random = np.random.default_rng(1)
    probes = [TRUTH.sample(random, 1, size) for size in SIZES]
    file = SampleFile(path, about)
    assert file.open() == []
    file.add(probes)
    with path.open("a", encoding="utf-8") as end:
        end.write(json.dumps(probes[0])[:20])
    again = SampleFile(path, about)
    assert again.open() == probes
    again.add(probes[:1])
    assert SampleFile(path, about).open() == [*probes, probes[0]]
    with pytest.raises(ValueError, match="host is example, expected other"):
        SampleFile(path, about | {"host": "other"}).open()
    for other in (b"host,rtt\n", b"\xdd\x00\xff\n"):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="not a sample file of longfat path"):
            SampleFile(path, about).open()


def test_a_latency_below_the_noise_is_zero() -> None:
    instant = Truth([10e6, 10e6, 20e6], [2e-3, 0.0, 0.0])
    latencies = [hop["link"]["latency_s"] for hop in _document(instant.samples(2, 16))["hops"] if hop["link"]]
    assert min(bound for latency in latencies for bound in latency.values()) >= 0.0
