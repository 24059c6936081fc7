"""CPU time of the analysis of a large run: loading, report, chart, and a rerun with nothing left to do.

    python benchmarks/analysis.py [--trials 2000] [--cells 50]

Simulates one trial of each cell, then fills the store with copies of its record with noise. Each step runs in
its own process; its CPU time includes imports.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from longfat import _native
from longfat.results.trial import Records, trials_frame
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.store.store import open_store
from longfat.study import Study, cells, load_study
from longfat.worlds.executor import record_from_json

PARTS = 120
"""Parts that a run of a minute leaves."""
STEPS = {
    "load_run": "from longfat import load_run; load_run('{folder}')",
    "load_run and report": "from longfat import load_run; "
    "from longfat.presentation.run.report.page import write_report; "
    "write_report(load_run('{folder}'))",
    "longfat chart": "import sys; from longfat.cli import main; sys.argv[1:] = ['chart', '{folder}']; main()",
    "longfat run, nothing to do": "import sys; from longfat.cli import main; "
    "sys.argv[1:] = ['run', '{folder}/study.toml', '--out', '{folder}']; main()",
}


def study(cell_count: int, trials: int) -> Study:
    """Five window protocols over a loss sweep."""
    return load_study(
        {
            "title": "Large run",
            "repeats": trials,
            "path": {"rate": "10Mbit/s", "delay": "5ms"},
            "workload": {"kind": "file", "size": "20kB"},
            "protocols": [
                {"name": f"w{w}", "kind": "selective-repeat", "window": w} for w in (1, 2, 4, 8, 16)
            ],
            "sweep": {"path.loss": [f"{n}%" for n in range(cell_count // 5)]},
            "claims": [
                {
                    "id": f"lead-{window}",
                    "text": "A window leads",
                    "metric": "goodput",
                    "of": f"w{window}",
                    "against": "w1",
                    "relation": "higher",
                }
                for window in (2, 4, 8, 16)
            ],
        },
        name="study",
    )


def fill(folder: Path, study: Study) -> int:
    """Writes the run's records; returns their number."""
    planned = cells(study)
    noise = np.random.default_rng(1)
    version = _native.version()
    trials = plan(planned, [study.repeats] * len(planned), study.seed, version, Present()).missing
    count = max(len(trials) // PARTS, 1)
    with open_store(folder, study.name, version, fresh=True) as store:
        store.describe(study, {})
        for group in trials.groups:
            once = record_from_json(_native.simulate(group[0].spec_json)).metrics or {}
            for first in range(0, len(group), count):
                some = group[first : first + count]
                factors = noise.lognormal(0, 0.1, len(some))
                metrics = {name: value * factors for name, value in once.items()}
                numbers = [trial.number for trial in some]
                store.add(some[0], Records(trials_frame(numbers, [None] * len(some), metrics)))
                store.flush()
    return len(trials)


def cpu(command: str) -> float:
    """CPU seconds, user and system, of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=2000, help="Trials of each cell.")
    parser.add_argument("--cells", type=int, default=50, help="Cells, a multiple of 5.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        print(f"{fill(folder, study(options.cells, options.trials))} trials in {options.cells} cells")
        for name, command in STEPS.items():
            print(f"{name}: {cpu(command.format(folder=folder)):.2f} s of CPU time", flush=True)


if __name__ == "__main__":
    main()
