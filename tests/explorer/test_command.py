"""The command `longfat explore`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.waiting import PATIENCE_S

import longfat

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
