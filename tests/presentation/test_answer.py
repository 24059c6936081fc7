"""The answer of a run has at most 25 lines, whatever the study."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.presentation.fakes import results_of

from longfat.presentation.run import details
from longfat.presentation.run.answer import MOST_LINES, answer
from longfat.presentation.run.displayed import Run
from longfat.results.run import Verdict, VerdictWord
from longfat.study import Overrides, Study, builtin, load_study

WORDS: tuple[VerdictWord, ...] = ("holds", "fails", "undecided")


def fake_run(study: Study, *, quick: bool, failures: bool = False) -> Run:
    """Returns a run with random values in every cell, and a random verdict for each claim and world."""
    draw = random.Random(study.name)
    detail = "in all 12 cells; closest at path.loss = 1%, goodput: bbr 44.3 Mbit/s, cubic 11.2 Mbit/s (n=20)"
    claims = [
        Verdict(claim.id, claim.text, draw.choice(WORDS), detail, claim.world or world)
        for claim in study.claims
        for world in study.worlds
    ]
    return Run(
        study, Path("runs") / study.name, results_of(study, draw, failures=failures), claims, {}, quick
    )


def lines_of(run: Run, width: int) -> list[str]:
    screen = io.StringIO()
    console = Console(width=width, file=screen)
    console.print(answer(run, console))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def studies() -> list[Any]:
    """All built-in studies; `make test` has those of ARQ only."""
    return [
        pytest.param(name, marks=[] if name.startswith("arq/") else pytest.mark.slow) for name in builtin()
    ]


@pytest.mark.parametrize("name", studies())
@pytest.mark.slow
def test_answers_of_built_in_studies_are_short(name: str) -> None:
    for quick, width in ((False, 80), (True, 160)):
        failures = quick
        study = load_study(name, Overrides(quick=quick))
        run = fake_run(study, quick=quick, failures=failures)
        lines = lines_of(run, width)
        assert len(lines) <= MOST_LINES, "\n".join(lines)
        assert lines[0].startswith(study.title[:20])
        assert any(line[:1] in "✓✗?" for line in lines if line) or not run.claims
        others = [line for line in lines if ":" in line and line.split(":")[0] in study.worlds]
        assert len(others) == len(study.worlds) - 1
        assert quick == any(line.startswith("Quick look: ") for line in lines)
        assert failures == any(line.startswith("! ") for line in lines)
        assert any("─" in line for line in lines), "a table"


def test_failing_claims_are_shown_first_if_there_are_many() -> None:
    study = load_study("fsfs/rivals")
    run = fake_run(study, quick=False)
    claims = [Verdict(f"c{i}", f"claim {i}", "fails" if i == 29 else "holds", "", "sim") for i in range(30)]
    lines = lines_of(Run(study, run.folder, run.cells, claims, {}), 80)
    assert "✗ fails     claim 29" in lines
    assert "25 more: 25 holds (--details)" in lines


SHOWN = ["goodput", "rtt_p50", "rtt_p99", "queue_mean_packets", "drops", "timeouts", "efficiency"]


def several_metrics(protocols: int) -> Run:
    """Returns a run of a study that shows more metrics than a terminal has place for."""
    study = load_study(
        {
            "title": "Several metrics",
            "path": {"rate": "10Mbit/s", "delay": "10ms", "loss": "1%"},
            "workload": {"kind": "bulk", "duration": "3s"},
            "protocols": ["reno", "cubic", "vegas", "bbr"][:protocols],
            "show": SHOWN,
            "sweep": {"path.loss": ["1%", "2%", "4%"]},
        }
    )
    return Run(study, Path("runs"), results_of(study, random.Random(1)), [], {})


@pytest.mark.parametrize("protocols", [1, 2, 4])
@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_mean_of_repeated_trials_has_an_interval(protocols: int, width: int) -> None:
    run = several_metrics(protocols)
    screen = io.StringIO()
    Console(width=width, file=screen).print(details.table(run.study, run))
    whole = screen.getvalue()
    assert max(map(len, whole.splitlines())) <= width
    assert "…" not in whole
    rows = [line for line in whole.splitlines() if "±" in line and "mean ±" not in line]
    assert sum(line.count("±") for line in rows) == len(run.cells) * len(SHOWN)


def test_an_answer_names_the_metrics_that_it_leaves_out() -> None:
    lines = lines_of(several_metrics(4), 100)
    [left] = [line for line in lines if line.startswith("--details prints")]
    assert left.endswith("timeouts, efficiency")


def test_an_answer_names_the_buffer_that_limits_flows() -> None:
    run = several_metrics(1)
    limited = [
        replace(cell, samples={**cell.samples, "sndbuf_limited_s": [2.9] * cell.n}) for cell in run.cells
    ]
    lines = lines_of(replace(run, cells=limited), 80)
    assert "key: send_buffer of the protocol" in " ".join(lines)
    assert len(lines) <= MOST_LINES


def test_the_form_of_every_protocol_is_named() -> None:
    """Also if there is only one, and with the reason if there is none."""
    tcp = {"kind": "tcp"}
    study = load_study(
        {
            "title": "Forms",
            "path": {"rate": "50Mbit/s", "delay": "20ms", "loss": "1%"},
            "workload": {"kind": "bulk", "duration": "10s"},
            "protocols": [
                {"name": "reno", **tcp, "congestion": "reno"},
                {"name": "vegas", **tcp, "congestion": "vegas"},
                {"name": "bbr", **tcp, "congestion": "bbr"},
                {"name": "quic", "kind": "quic"},
            ],
        }
    )
    lines = [line for line in lines_of(fake_run(study, quick=False), 160) if line.startswith("theory of")]
    assert lines == [
        "theory of reno: Mathis with recovery: RTT (sqrt(p) / 1.31 + p) per packet, and timeouts",
        "theory of vegas, bbr: none: the controller responds to losses by other rules than Reno and CUBIC",
        "theory of quic: none: only for TCP and ARQ protocols, not quic",
    ]
