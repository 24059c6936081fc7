"""The commands `longfat chart` and `longfat trace`."""

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


@pytest.mark.slow
def test_charts_of_a_run_are_written(cli: Cli, finished: Path, tmp_path: Path) -> None:
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


def test_undrawable_charts_fail_with_one_line(cli: Cli, finished: Path) -> None:
    for arguments, phrase in UNDRAWABLE:
        done = cli("chart", *arguments, ok=False)
        assert done.returncode != 0
        assert len(done.stderr.splitlines()) == 1
        assert phrase in done.stderr
        assert done.stdout == ""
    assert not list(finished.parent.glob("x.*"))


def test_a_trace_is_written_as_text_svg_html_and_packets(cli: Cli, study_file: Path, tmp_path: Path) -> None:
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


def test_traces_of_several_protocols_share_a_page(cli: Cli, study_file: Path, tmp_path: Path) -> None:
    both = ["--protocol", "gbn", "--protocol", "sr", "--cell", "path.loss=10%"]
    text = cli("trace", study_file, *both).stdout
    assert text.index("gbn: Go-Back-N") < text.index("sr: Selective repeat")
    for name in ("l.png", "l.pdf", "l.svg", "l.html"):
        cli("trace", study_file, *both, "--out", name)
        assert (tmp_path / name).read_bytes()[:4].lower() == MAGIC[name[2:]][:4].lower()
    charts = cli("trace", study_file, *both, "--chart", "window").stdout
    assert "sender (Go-Back-N, gbn)" in charts
    assert "sender (Selective repeat, sr)" in charts
    refused = cli("trace", study_file, *both, "--pcapng", "x.pcapng", ok=False)
    assert "--pcapng: takes one --protocol only" in refused.stderr


@pytest.fixture
def tcp_study(write: Any) -> Path:
    """A study of two senders that overload a shared bottleneck."""
    content = {
        "title": "Two senders",
        "worlds": ["sim"],
        "seed": 3,
        "topology": {
            "kind": "dumbbell",
            "pairs": 2,
            "bottleneck": {"rate": "10Mbit/s", "delay": "5ms", "queue": "20pkt"},
            "access": {"rate": "100Mbit/s", "delay": "1ms"},
        },
        "workload": {"kind": "bulk", "duration": "1s"},
        "protocols": [{"name": "cubic", "kind": "tcp"}],
    }
    return Path(write(content, "two.toml"))


@pytest.mark.slow
def test_tcp_is_drawn_over_time(cli: Cli, tcp_study: Path, tmp_path: Path) -> None:
    text = cli("trace", tcp_study).stdout
    for phrase in (
        "s1\n",
        "s2\n",
        "congestion window",
        "smoothed RTT",
        "queue of bottleneck",
        "lost (queue)",
    ):
        assert phrase in text
    part = cli("trace", tcp_study, "--flow", "s2", "--chart", "rtt", "--from", "0.5s", "--to", "0.7s").stdout
    assert "500 ms to 700 ms" in part
    assert "s1" not in part
    assert "congestion window" not in part
    cli("trace", tcp_study, "--chart", "window", "--out", "w.svg", "--interval", "10ms")
    assert (tmp_path / "w.svg").read_bytes().startswith(MAGIC["svg"])
    cli("trace", tcp_study, "--out", "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(MAGIC["png"])


def test_a_ladder_of_tcp_shows_one_flow(cli: Cli, tcp_study: Path) -> None:
    ladder = cli("trace", tcp_study, "--chart", "ladder", "--flow", "s2", "--from", "0s").stdout
    assert "flow s2 of 2" in ladder
    assert "data 0-1448" in ladder
    assert "syn-ack" in ladder


def test_a_capture_contains_the_packets_of_one_side(cli: Cli, tcp_study: Path, tmp_path: Path) -> None:
    sizes = {}
    for side in ("sender", "receiver", "both"):
        done = cli(
            "trace", tcp_study, "--chart", "rtt", "--pcapng", "t.pcapng", "--side", side, "--snap", "96"
        )
        assert "Packets: t.pcapng" in done.stderr
        sizes[side] = (tmp_path / "t.pcapng").stat().st_size
    cli("trace", tcp_study, "--chart", "rtt", "--pcapng", "t.pcapng", "--snap", "96")
    assert (tmp_path / "t.pcapng").stat().st_size == sizes["sender"] > sizes["receiver"]
    # Only the sender's capture has the lost packets; the file header occurs once.
    assert 0 < sizes["sender"] + sizes["receiver"] - sizes["both"] < 1000


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--flow", "s3"], "allowed: s1, s2"),
        (["--chart", "window", "--packets", "9"], "--packets"),
        (["--chart", "ladder", "--format", "png"], "needs --out"),
        (["--format", "pdf"], "--out"),
        (["--side", "both"], "--pcapng"),
        (["--snap", "96"], "--pcapng"),
        (["--interval", "0s"], "at least 1us"),
        (["--chart", "ladder", "--interval", "1ms"], "--interval"),
        (["--chart", "ladder", "--flow", "s1", "--flow", "s2"], "one flow"),
        (["--from", "9s"], "--from and --to"),
    ],
)
def test_undrawable_tcp_charts_fail_with_one_line(
    cli: Cli, tcp_study: Path, arguments: list[str], phrase: str
) -> None:
    done = cli("trace", tcp_study, *arguments, ok=False)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert phrase in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        ([], "--protocol is required"),
        (["--protocol", "gbm"], 'did you mean "gbn"'),
        (["--protocol", "gbn", "--cell", "path.loss=7%"], "allowed: 0%, 5%, 10%"),
        (["--protocol", "gbn", "--cell", "path.rate=7%"], "not swept"),
        (["--protocol", "gbn", "--cell", "nonsense"], "KEY=VALUE"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--from", "3"], "is not a duration"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--from", "9min"], "choose another"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--out", "no/such/x.svg"], "no/such/x.svg"),
        (["--protocol", "gbn", "--cell", "path.loss=5%", "--pcapng", "no/such/x"], "no/such/x"),
    ],
)
def test_untraceable_trials_fail_with_one_line(
    cli: Cli, study_file: Path, arguments: list[str], phrase: str
) -> None:
    done = cli("trace", study_file, *arguments, ok=False)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert phrase in done.stderr
    assert done.stdout == ""
