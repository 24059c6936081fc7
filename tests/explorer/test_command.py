"""The command `longfat explore`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

from tests.conftest import Cli
from tests.waiting import PATIENCE_S

import longfat
from longfat.cli.explorer_study import served
from longfat.study import load_study

BUILT = Path(longfat.__file__).parent / "explorer" / "index.html"


def test_prints_its_address_and_serves_until_ctrl_c(folder: Path) -> None:
    assert BUILT.is_file(), "make explorer writes it"
    command = [sys.executable, "-P", "-m", "longfat", "explore", "lesson=5", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            found = re.fullmatch(
                r"(http://127\.0\.0\.1:\d+/[\w-]{20,}/index\.html\?engine=native)#lesson=5", address
            )
            assert found
            with urllib.request.urlopen(found[1], timeout=PATIENCE_S) as page:
                assert page.read() == BUILT.read_bytes()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_cell_needs_a_study(cli: Cli) -> None:
    done = cli("explore", "lesson=5", "--cell", "path.loss=2%", "--no-browser", ok=False)
    assert "--protocol, --cell and --set choose a cell of a study: longfat explore STUDY" in done.stderr
    done = cli("explore", "l4s/sharin", "--no-browser", ok=False)
    assert "l4s/sharing" in done.stderr
    done = cli("explore", "l4s/sharing", "--cell", "path.queue=SFQ", "--no-browser", ok=False)
    assert "path.queue = SFQ is not swept; allowed: DualPI2, FIFO" in done.stderr


def test_a_study_is_served_as_one_cell_with_the_values_of_its_expressions() -> None:
    found = served(load_study("l4s/sharing"), (), ["path.queue=FIFO"])
    study = tomllib.loads(found["text"])
    assert found["note"] == (
        "The page shows one cell of 3: path.queue = FIFO, traffic.rival.protocol = CUBIC with ECN."
    )
    # Two bandwidth-delay products of 100 Mbit/s and 10 ms.
    assert study["path"]["queue"] == "250000B"
    assert [one["name"] for one in study["protocols"]] == ["prague"]
    assert study["traffic"][0]["protocol"] == {"kind": "tcp", "congestion": "cubic", "ecn": True}
    several = served(load_study("congestion/matrix"), ["vegas", "reno"], ())
    assert [one["name"] for one in tomllib.loads(several["text"])["protocols"]] == ["vegas", "reno"]
