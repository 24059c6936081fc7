"""Generated runs with known true values, for tests of analyses and their presentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from longfat.analysis.claims import judge
from longfat.analysis.prediction import predict
from longfat.analysis.statistics import summarise
from longfat.presentation.run.verdicts import verdict
from longfat.results.run import Cell, CellResult, RunResult, Verdict
from longfat.store.table import Table
from longfat.study import Study, sweep

Truth = Callable[[Cell], float]

LOSS_STUDY: dict[str, Any] = {
    "title": "Selective repeat against Go-Back-N as loss grows",
    "source": "arq-comparison, tables 1 and 4",
    "description": "What does each step from stop-and-wait to selective repeat buy when packets are lost?",
    "notes": ["The window of 8 packets is far below what the path could hold."],
    "worlds": ["sim", "relay"],
    "repeats": 20,
    "path": {"rate": "100Mbit/s", "delay": "5ms", "queue": "100pkt"},
    "workload": {"kind": "file", "size": "1857353B"},
    "protocols": [
        {"name": "stop-and-wait", "kind": "stop-and-wait", "rto": "20ms"},
        {"name": "gbn", "kind": "go-back-n", "window": 8, "rto": "20ms"},
        {"name": "sr", "kind": "selective-repeat", "window": 8, "rto": "20ms"},
    ],
    "sweep": {"path.loss": ["0%", "2%", "4%", "6%", "8%", "10%"]},
    "claims": [
        {
            "id": "sr-leads",
            "text": "Selective repeat is ahead of Go-Back-N from 4 % loss on",
            "metric": "goodput",
            "of": "sr",
            "against": "gbn",
            "relation": "higher",
            "where": {"path.loss": ">=4%"},
        },
        {
            "id": "lead-grows",
            "text": "The lead of selective repeat grows with loss",
            "metric": "goodput",
            "of": "sr",
            "against": "gbn",
            "relation": "lead-rises-with",
            "along": "path.loss",
        },
        {
            "id": "sw-first",
            "text": "Stop-and-wait is faster than a sliding window, as the source measured",
            "metric": "goodput",
            "of": "stop-and-wait",
            "against": "gbn",
            "relation": "higher",
        },
        {
            "id": "same-at-2",
            "text": "At 2 % loss the two are within 3 % of each other",
            "metric": "goodput",
            "of": "sr",
            "against": "gbn",
            "relation": "within",
            "by": "3%",
            "where": {"path.loss": "2%"},
        },
    ],
    "reported": [
        {"protocol": "stop-and-wait", "where": {"path.loss": "2%"}, "goodput": "0.415Mbit/s"},
        {"protocol": "stop-and-wait", "where": {"path.loss": "10%"}, "goodput": "0.136Mbit/s"},
        {"protocol": "gbn", "where": {"path.loss": "2%"}, "goodput": "0.239Mbit/s"},
        {"protocol": "gbn", "where": {"path.loss": "4%"}, "goodput": "0.161Mbit/s"},
        {"protocol": "gbn", "where": {"path.loss": "10%"}, "goodput": "0.061Mbit/s"},
        {"protocol": "sr", "where": {"path.loss": "2%"}, "goodput": "0.226Mbit/s"},
        {"protocol": "sr", "where": {"path.loss": "10%"}, "goodput": "0.129Mbit/s"},
    ],
}

TEXT = """title = "Selective repeat against Go-Back-N as loss grows"
source = "arq-comparison, tables 1 and 4"
worlds = ["sim", "relay"]   # <both>
"""

ENVIRONMENT = {
    "longfat": "0.1.0",
    "kernel": "Linux 6.12.0",
    "machine": "x86_64",
    "cpu": "Example CPU @ 3.00GHz",
    "cores": 2,
    "python": "3.11.7",
    "date": "2026-11-20T14:00:00+00:00",
    "argv": ["longfat", "run", "arq/loss"],
}


def make_study(changes: Mapping[str, Any] | None = None) -> Study:
    """Returns the loss study, or one with some keys changed."""
    study = Study.model_validate({**LOSS_STUDY, **(changes or {})})
    return study.with_provenance(name="arq/loss", text=TEXT)


def by_theory(cell: Cell) -> float:
    """Returns the goodput of theory, 1.5 % less in the relay world."""
    return (predict(cell.spec).value or 1e6) * (0.985 if cell.world == "relay" else 1.0)


def make_records(
    of: Study, truth: Truth = by_theory, spread: float = 0.02, seed: int = 1, failures: int = 0
) -> pl.DataFrame:
    """Returns records of a run; part of the noise is common to all cells of a trial."""
    random = np.random.default_rng(seed)
    shared = random.normal(0, 1, size=of.repeats)
    rows: list[dict[str, Any]] = []
    for index, cell in enumerate(sweep.cells(of)):
        for trial in range(of.repeats):
            noise = 0.8 * shared[trial] + 0.6 * random.normal()
            goodput = truth(cell) * (1 + spread * noise)
            failed = trial < failures and cell.world == "relay" and cell.protocol == "gbn"
            packets = 1814 * (1 + 0.03 * (1 + spread * noise))
            row = {
                "cell": index,
                "world": cell.world,
                "protocol": cell.protocol,
                **{key: str(value) for key, value in cell.params.items()},
                "trial": trial,
                "seed": of.seed,
                "error": "peer silent for 30 s" if failed else None,
                "goodput_bps": goodput,
                "completion_s": 1857353 * 8 / goodput,
                "packets_sent": packets,
                "retransmissions": packets - 1814,
                "timeouts": float(random.poisson(20)),
                "efficiency": min(1.0, 1814 / packets * 0.94),
                "rtt_p50_s": 0.0102 * (1 + 0.002 * noise),
                "rtt_p99_s": 0.0108 * (1 + 0.01 * abs(noise)),
            }
            if failed:
                row.update({name: None for name in row if name.endswith(("_bps", "_s", "s_sent"))})
                row.update({"retransmissions": None, "timeouts": None, "efficiency": None})
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def make_results(records: pl.DataFrame, planned: Sequence[Cell]) -> list[CellResult]:
    """The results of made-up records."""
    part = records.with_columns(cell_key=pl.col("cell").cast(pl.String)).drop("cell")
    keys = [str(index) for index in range(len(planned))]
    return summarise(Table(lambda _: iter([part]), keys, [records.height] * len(planned)), planned)


def make_run(
    of: Study | None = None,
    truth: Truth = by_theory,
    spread: float = 0.02,
    folder: Path = Path("runs/arq/loss"),
    failures: int = 0,
) -> RunResult:
    """Returns a run with generated records."""
    of = of or make_study()
    table = make_records(of, truth, spread, failures=failures)
    results = [replace(one, samples=dict(one.samples)) for one in make_results(table, sweep.cells(of))]
    return RunResult(
        of, folder, results, verdicts_of(of, results), dict(ENVIRONMENT), read_records=lambda: table
    )


def verdicts_of(study: Study, results: Sequence[CellResult]) -> list[Verdict]:
    """Returns the verdicts of a run with these results."""
    return [verdict(one) for one in judge(study, results)]


@dataclass(frozen=True)
class RunFactory:
    """Constructors of studies, records and runs; a fixture shares them between test files."""

    study = staticmethod(make_study)
    records = staticmethod(make_records)
    results = staticmethod(make_results)
    run = staticmethod(make_run)
    verdicts = staticmethod(verdicts_of)
    by_theory = staticmethod(by_theory)


@pytest.fixture(scope="session")
def factory() -> RunFactory:
    return RunFactory()


@pytest.fixture(scope="session")
def whole_run() -> RunResult:
    """The loss study in both worlds, with some failures."""
    return make_run(failures=2)
