"""Time, memory and size of a run with many trials and precomputed records.

    python benchmarks/store.py [--trials 1000000]

Needs DuckDB. Each step runs in its own process; its time includes imports.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

METRICS = ("goodput_bps", "completion_s", "efficiency", "retransmissions", "timeouts", "rtt_mean_s")
CELLS = 50
FILES = "{folder}/records/part-*.parquet"

RUN = """
import numpy as np
from concurrent.futures import Future
from pathlib import Path
from longfat.runner import run_study, runner
from longfat.worlds.executor import ThreadedExecutor
from longfat.results.trial import Records, trials_frame
from longfat.study import load_study

class Constant(ThreadedExecutor):
    most_trials = 1000

    def __init__(self):
        super().__init__(2)
        self.noise = np.random.default_rng(1)

    def run_all(self, trials):
        metrics = {{name: self.noise.lognormal(0, 0.1, len(trials)) for name in {metrics}}}
        count = len(trials)
        numbers = [trial.number for trial in trials]
        return Records(trials_frame(numbers, [None] * count, metrics), seconds=1e-6 * count)

runner.executor_of = lambda world, jobs: Constant()
study = load_study({{
    "title": "Many trials",
    "repeats": {trials} // {cells},
    "path": {{"rate": "10Mbit/s", "delay": "5ms"}},
    "workload": {{"kind": "file", "size": "20kB"}},
    "protocols": [{{"name": f"w{{w}}", "kind": "selective-repeat", "window": w}} for w in (1, 2, 4, 8, 16)],
    "sweep": {{"path.loss": [f"{{n}}%" for n in range({cells} // 5)]}},
}}, name="study")
run_study(study, folder=Path("{folder}"))
"""
STEPS = {
    "run": RUN,
    "load and report": "from longfat import load_run; "
    "from longfat.presentation.run.report.page import write_report; write_report(load_run('{folder}'))",
    "group-by in polars": "import polars as pl; pl.scan_parquet('"
    + FILES
    + "').group_by('protocol', 'params')"
    ".agg(pl.col('goodput_bps').mean()).collect()",
    "group-by in DuckDB": "import duckdb; duckdb.sql(\"SELECT protocol, params, avg(goodput_bps) FROM '"
    + FILES
    + "' GROUP BY ALL\").fetchall()",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1_000_000, help="Trials of the run, a multiple of 50.")
    trials = parser.parse_args().trials
    measured = (
        "import resource, time; started = time.monotonic()\n{}\n"
        "usage = resource.getrusage(resource.RUSAGE_SELF)\n"
        "cpu = usage.ru_utime + usage.ru_stime\n"
        "print(f'{{time.monotonic() - started:.2f}} s, {{cpu:.2f}} s of CPU time, '"
        "f'{{usage.ru_maxrss / 1024:.0f}} MiB')"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        for name, program in STEPS.items():
            text = program.format(folder=folder, trials=trials, cells=CELLS, metrics=METRICS)
            code = measured.format(text)
            done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
            print(f"{name}: {done.stdout.strip()}", flush=True)
        parts = list((folder / "records").glob("part-*.parquet"))
        size = sum(part.stat().st_size for part in parts)
        print(f"{size / trials / len(METRICS):.1f} B per trial and metric in {len(parts)} parts")


if __name__ == "__main__":
    main()
