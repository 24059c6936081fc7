"""`longfat trace` on real kernels, and two worlds in one chart."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from tests.conftest import Cli

STUDY = {
    "title": "One Reno for a moment",
    "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"},
    "workload": {"kind": "file", "size": "1MB"},
    "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}],
}


@pytest.fixture
def reno(tmp_path: Path) -> Path:
    path = tmp_path / "reno.toml"
    path.write_text(tomli_w.dumps(STUDY))
    return path


@pytest.mark.usefixtures("emulated")
def test_a_kernels_trial_is_drawn_and_captured(cli: Cli, reno: Path, tmp_path: Path) -> None:
    text = cli("trace", reno, "--world", "netns", "--pcapng", "reno.pcapng").stdout
    for words in ("netns", "congestion window", "smoothed RTT", "delivery rate", "queue of forward"):
        assert words in text
    # 1 MB in segments of 1448 bytes.
    assert "data segments" in text
    assert (tmp_path / "reno.pcapng").stat().st_size > 1_000_000


@pytest.mark.usefixtures("emulated")
def test_two_worlds_share_a_chart(cli: Cli, reno: Path, tmp_path: Path) -> None:
    cli("trace", reno, "--world", "sim", "--world", "netns", "--chart", "window", "--out", "both.svg")
    drawing = (tmp_path / "both.svg").read_text()
    assert "(sim)" in drawing
    assert "(netns)" in drawing


def test_worlds_without_traces_are_refused(cli: Cli, reno: Path) -> None:
    relay = cli("trace", reno, "--world", "relay", ok=False)
    assert '"relay" has no traces' in relay.stderr
    both = ("--world", "sim", "--world", "netns")
    assert "one --world only" in cli("trace", reno, *both, "--chart", "ladder", ok=False).stderr
    assert "one --world only" in cli("trace", reno, *both, "--pcapng", "x.pcapng", ok=False).stderr
    short = cli("trace", reno, "--world", "netns", "--interval", "10us", ok=False)
    assert "at least 1ms in netns" in short.stderr
