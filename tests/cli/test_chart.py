"""`longfat chart`: options, files, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from tests.conftest import Cli


@pytest.fixture
def loss(cli: Cli, tmp_path: Path) -> str:
    """A run of two protocols over a sweep with zero."""
    study = {
        "title": "Who is fast",
        "repeats": 3,
        "path": {"rate": "10Mbit/s", "delay": "5ms"},
        "workload": {"kind": "file", "size": "50kB"},
        "protocols": [
            {"name": "reno", "label": "NewReno (1999)", "kind": "tcp", "congestion": "reno"},
            {"name": "gbn", "kind": "go-back-n", "window": 8},
        ],
        "sweep": {"path.loss": ["0%", "2%"]},
    }
    path = tmp_path / "loss.toml"
    path.write_text(tomli_w.dumps(study))
    cli("run", path)
    return "loss"


def test_a_chart_for_a_paper(cli: Cli, loss: str, tmp_path: Path) -> None:
    done = cli("chart", loss, "--size", "column", "--csv", "--out", "figures.pdf")
    assert done.stdout.split() == ["figures.pdf", "figures.csv"]
    assert done.stderr.startswith(
        "Caption: Goodput over packet loss (%). Path: rate 10Mbit/s, delay 5ms. Bars: "
    )
    assert b"MediaBox [0 0 252" in (tmp_path / "figures.pdf").read_bytes()
    assert "NewReno (1999)" in (tmp_path / "figures.csv").read_text(encoding="utf-8")


def test_files_are_named_after_the_metric_and_the_kind(cli: Cli, loss: str) -> None:
    done = cli("chart", loss, "--metric", "retransmissions", "--csv")
    assert done.stdout.split() == ["runs/loss/retransmissions.svg", "runs/loss/retransmissions.csv"]
    assert cli("chart", loss, "--cdf", "trials").stdout.strip() == "runs/loss/goodput-cdf-trials.svg"
    done = cli("chart", loss, "--cdf", "flows", "--format", "png", "--cell", "path.loss=2%")
    assert done.stdout.strip() == "runs/loss/fct-cdf-flows.png"


def test_texts_fonts_and_facets(cli: Cli, loss: str, tmp_path: Path) -> None:
    texts = [
        "--title",
        "T 1",
        "--x-label",
        "X 1",
        "--y-label",
        "Y 1",
        "--font",
        "serif",
        "--font-size",
        "9pt",
    ]
    cli("chart", loss, *texts, "--facet", "path.loss", "--out", "a.svg")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for text in ("T 1", "X 1", "Y 1", "Packet loss 2%", "NewReno (1999)"):
        assert text in svg


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "3.5"], '--size: "3.5" is not a size'),
        (["--size", "1.1in", "--font-size", "14pt"], "choose a larger size, a smaller --font-size"),
        (["--font-size", "9furlong"], '--font-size: "9furlong" is not a font size'),
        (["--font", "No Such Font", "--format", "pdf"], '--font: "No Such Font" is not installed'),
        (["--y-range", "1ms"], '--y-range: "1ms" is not a range; write LOW..HIGH'),
        (["--cdf", "trials", "--y-range", "0..1"], "--y-range: excludes --cdf"),
        (["--log", "x"], "--log: the x axis has the value 0"),
        (["--facet", "path.rate"], '--facet: "path.rate" is not swept; allowed: path.loss'),
        (["--by-host", "--cdf", "trials"], "--by-host: excludes --cdf"),
        (["--cdf", "flows", "--metric", "rtt_p50"], '--metric: "rtt_p50" is not a metric of flows'),
        (["--cell", "path.loss=3%"], "--cell: path.loss = 3% is not swept; allowed: 0%, 2%"),
    ],
)
def test_mistakes_are_one_line(cli: Cli, loss: str, options: list[str], message: str) -> None:
    failed = cli("chart", loss, *options, ok=False)
    assert failed.returncode != 0
    assert message in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_the_name_of_a_study_that_ran_only_quickly_names_its_folder(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "loss-quick"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    failed = cli("chart", "loss", ok=False)
    assert failed.stderr.strip().endswith("did you mean runs/loss-quick?")
