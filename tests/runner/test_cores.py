"""Records are bit-identical for any number of concurrent trials."""

from __future__ import annotations

from pathlib import Path

from tests.runs import run_study

from longfat.study import load_study

STUDY = """
title = "Four flows of two controllers, datagrams between them, and chance everywhere"
repeats = 4
workload = { kind = "bulk", duration = "4s", warm_up = "1s", start_jitter = "500ms" }
protocols = [
    { name = "cubic", kind = "tcp", congestion = "cubic" },
    { name = "bbr", kind = "tcp", congestion = "bbr" },
]

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "20Mbit/s", delay = "10ms", loss = "0.1%", queue = { kind = "red" } }
access = { rate = "100Mbit/s", delay = "1ms", jitter = "200us" }

[[traffic]]
name = "cross"
protocol = { kind = "udp" }
workload = { kind = "on-off", rate = "2Mbit/s" }
"""


def test_records_are_the_same_bits_on_one_core_and_on_two(tmp_path: Path) -> None:
    file = tmp_path / "chance.toml"
    file.write_text(STUDY, encoding="utf-8")
    study = load_study(file)
    one, two = (run_study(study, folder=tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert one.to_polars().equals(two.to_polars())
    assert one.flows_to_polars().equals(two.flows_to_polars())
    # Trials differ, so the seeds have an effect.
    assert one.to_polars()["goodput_bps"].n_unique() == 8
