"""Types of study keys: current, checked by type checkers, and convertible to TOML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.study import key_types

import longfat as lf

ROOT = Path(__file__).parents[2]
NOTEBOOK = """
import longfat as lf

path = lf.Path(rate="10Mbit/s", delay="20ms", queue="codel", reverse={"rate": "1Mbit/s"})
rival = lf.Traffic("rival", lf.Tcp("reno"), {"kind": "bulk"})
topology = lf.Topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s", "delay": "20ms"})
study = lf.Study(
    title="A question",
    path=path,
    workload=lf.Workload("file", size="1MB"),
    protocols=["cubic", lf.GoBackN(window=8), lf.Mptcp(scheduler="ecf"), lf.Udp()],
    traffic=[rival],
    sweep={"path.loss": ["1%", "2%"]},
    claims=[lf.Claim(id="a", text="A", metric="goodput", of="cubic", against="go-back-n", relation="higher")],
)
trial = lf.simulate(lf.Tcp("vegas", profile="rfc"), path, "1MB")
print(trial.goodput, lf.sweep({"path": path, "size": "1MB"}, {"protocol": ["cubic"]}).to_polars())
traces = lf.trace(["cubic", "bbr"], path, duration="5s")
traces.chart("window", "rtt")
"""
MISTAKES = ('lf.Path(dealy="20ms")', 'lf.Tcp(profil="rfc")', 'lf.Workload("fiel")', "lf.Path(delay=20)")


def test_the_generated_types_are_current() -> None:
    assert key_types.TARGET.read_text(encoding="utf-8") == key_types.text(), "run make reference"


@pytest.mark.slow
def test_pyright_accepts_notebooks_and_refuses_misspelled_keys(tmp_path: Path) -> None:
    """As mypy does: `make lint` fails if it accepts the misspelled keys of tests/test_api.py."""
    file = tmp_path / "notebook.py"
    wrong = "\n".join(MISTAKES)
    file.write_text(f"{NOTEBOOK}{wrong}\n", encoding="utf-8")
    first = NOTEBOOK.count("\n") + 1
    done = subprocess.run(
        [sys.executable, "-m", "pyright", f"--pythonpath={sys.executable}", file],
        cwd=ROOT / "python",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if "notebook.py" in line and "error" in line]
    lines = [int(line.partition("notebook.py:")[2].partition(":")[0]) for line in found]
    assert sorted(set(lines)) == [first + number for number in range(len(MISTAKES))], done.stdout


@pytest.mark.parametrize(
    "made",
    [
        lf.Path(rate="10Mbit/s", reverse={"delay": "5ms"}),
        lf.Topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s"}),
        lf.Workload("bulk", duration="20s"),
        lf.Traffic("rival", "reno", {"kind": "bulk"}),
        lf.Tcp("vegas", name="mine"),
        lf.Arq("go-back-n", window=8),
        lf.Mptcp(scheduler="ecf"),
        lf.Udp(),
    ],
)
def test_tables_convert_to_toml_and_back(made: lf.Path) -> None:
    assert type(made).from_toml(made.to_toml()) == made


def test_studies_convert_to_toml_and_back(tmp_path: Path) -> None:
    study = lf.Study(
        title="T",
        path=lf.Path(rate="1Mbit/s"),
        workload=lf.Workload("file", size="20kB"),
        protocols=["cubic", lf.GoBackN(window=8)],
        repeats=3,
        claims=[
            lf.Claim(id="a", text="A", metric="goodput", of="cubic", against="go-back-n", relation="higher")
        ],
    )
    assert lf.Study.from_toml(study.to_toml()) == study
    (tmp_path / "t.toml").write_text(study.to_toml(), encoding="utf-8")
    assert lf.load_study(tmp_path / "t.toml").model_dump() == lf.load_study(study).model_dump()
    assert [claim.verdict for claim in lf.run(study, out=tmp_path / "run").claims] == ["holds"]
    with pytest.raises(ValueError, match="dealy"):
        lf.Path.from_toml('dealy = "1ms"')
