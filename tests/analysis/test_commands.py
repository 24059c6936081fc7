"""`longfat chart` and `longfat trace`, as a user starts them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
MAGIC = {"svg": b"<svg", "pdf": b"%PDF-", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}


@pytest.fixture
def study_file(data: dict[str, Any], write: Any) -> Path:
    return Path(write(data))


@pytest.fixture
def finished(cli: Cli, study_file: Path, tmp_path: Path) -> Path:
    cli("run", study_file, "--out", "done")
    return tmp_path / "done"


def test_charts_of_a_run(cli: Cli, finished: Path, tmp_path: Path) -> None:
    for fmt in ("svg", "pdf", "png"):
        done = cli("chart", finished, "--format", fmt)
        assert Path(done.stdout.strip()) == finished / f"goodput.{fmt}"
        assert (finished / f"goodput.{fmt}").read_bytes().startswith(MAGIC[fmt])
    cli("chart", finished, "--metric", "retransmissions", "--out", "again.svg")
    assert (tmp_path / "again.svg").read_bytes().startswith(MAGIC["svg"])


UNDRAWABLE = [
    (["nowhere"], "nowhere"),
    (["done", "--metric", "godput"], 'did you mean "goodput"'),
    (["done", "--out", "x.bmp"], "x.bmp"),
    (["done", "--out", "x.svg", "--format", "pdf"], "x.svg"),
    (["done", "--out", "no/such/x.svg"], "x.svg"),
]


def test_what_cannot_be_drawn_ends_in_one_line(cli: Cli, finished: Path) -> None:
    for arguments, words in UNDRAWABLE:
        done = cli("chart", *arguments, ok=False)
        assert done.returncode != 0
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr
        assert done.stdout == ""
    assert not list(finished.parent.glob("x.*"))


def test_trace_as_text_svg_html_and_packets(cli: Cli, study_file: Path, tmp_path: Path) -> None:
    cell = ["--protocol", "gbn", "--cell", "path.loss=10%"]
    text = cli("trace", study_file, *cell).stdout
    assert "timeout" in text
    assert "loss" in text
    cli("trace", study_file, *cell, "--out", "l.svg", "--pcapng", "l.pcapng")
    assert (tmp_path / "l.svg").read_bytes().startswith(b"<svg")
    assert (tmp_path / "l.pcapng").read_bytes().startswith(b"\x0a\x0d\x0d\x0a")
    assert cli("trace", study_file, *cell, "--format", "html").stdout.startswith("<!doctype html>")
    first = cli("trace", study_file, *cell, "--trial", "1", "--from", "20ms", "--to", "30ms").stdout
    assert first != text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l.pcapng", "l.svg", "small.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--protocol is needed"),
        (["--protocol", "gbm"], 'did you mean "gbn"'),
        (["--protocol", "gbn", "--cell", "path.loss=7%"], "allowed: 0%, 5%, 10%"),
        (["--protocol", "gbn", "--cell", "path.rate=7%"], "not swept"),
        (["--protocol", "gbn", "--cell", "nonsense"], "KEY=VALUE"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--from", "3"], "no time"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--from", "9min"], "choose another"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--out", "no/such/x.svg"], "no/such/x.svg"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--pcapng", "no/such/x"], "no/such/x"),
    ],
)
def test_what_cannot_be_traced_ends_in_one_line(
    cli: Cli, study_file: Path, arguments: list[str], words: str
) -> None:
    done = cli("trace", study_file, *arguments, ok=False)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
