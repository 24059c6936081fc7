"""Simulates what users simulate, so that `maturin build --pgo` learns which branches are usual."""

from __future__ import annotations

import subprocess
import sys
import tempfile

STUDIES = (
    "congestion/matrix",
    "congestion/bandwidth",
    "congestion/sharing",
    "arq/loss",
    "fsfs/figures-2-4",
    "fsfs/policies",
)


def main() -> None:
    """Runs one trial of each cell of some studies; fails with the first one that fails."""
    with tempfile.TemporaryDirectory() as folder:
        for study in STUDIES:
            # Claims may be undecided after one trial (status 1); an error has status 2.
            command = [sys.executable, "-m", "longfat", "run", study, "--quick", "--world", "sim"]
            command += ["--repeats", "1", "--out", f"{folder}/{study}"]
            status = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
            if status not in {0, 1}:
                sys.exit(f"training.py: longfat run {study} ended with status {status}")


if __name__ == "__main__":
    main()
