"""`longfat packetdrill` on scripts that pass, fail, cannot be run, and are none."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Cli

OWN = Path(__file__).parents[1] / "packetdrill"
HANDSHAKE = """\
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 65535 <mss 1000>
   +0 > S. 0:0(0) ack 1 <mss 1460>
+.050 < . 1:1(0) ack 1 win 8000
   +0 accept(3, ..., ...) = 4
"""


def script(folder: Path, name: str, more: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HANDSHAKE + more, encoding="utf-8")
    return path


def test_a_script_that_passes(cli: Cli) -> None:
    path = OWN / "handshake-passive.pkt"
    done = cli("packetdrill", path)
    assert done.stdout == f"pass {path}\n1 passed of 1\n"


def test_a_departure_names_line_expectation_and_what_was_seen(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "wrong.pkt", "   +0 write(4, ..., 100) = 100\n   +0 > P. 1:200(199) ack 1\n")
    done = cli("packetdrill", path, ok=False)
    assert done.returncode == 1
    first, total = done.stdout.splitlines()
    assert first.startswith(f"FAIL {path}:9 expected P. 1:200(199) ack 1 at 0.050000s, seen ")
    assert "P. 1:101(100) ack 1" in first
    assert total == "1 failed of 1"


def test_what_a_script_needs_is_named_and_is_no_failure(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "splice.pkt", "   +0 splice(4, 5, 10) = 10\n")
    done = cli("packetdrill", path)
    assert done.stdout == f"unsupported {path}:8 the system call splice()\n1 unsupported of 1\n"


def test_a_text_that_is_no_script_fails(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "broken.pkt", "   +0 > Q. 1:1(0)\n")
    done = cli("packetdrill", path, ok=False)
    assert done.returncode == 1
    assert done.stdout.startswith(f"INVALID {path}:8 `Q` is no TCP flag")


def test_directories_sum_up_and_json_tells_all(cli: Cli, tmp_path: Path) -> None:
    script(tmp_path, "scripts/a/good.pkt")
    script(tmp_path, "scripts/b/bad.pkt", "   +0 read(4, ..., 5) = 5\n")
    script(tmp_path, "scripts/b/notes.txt")
    done = cli("packetdrill", "--summary", tmp_path / "scripts", ok=False)
    folder = tmp_path / "scripts"
    assert done.stdout.splitlines() == [
        f"{folder / 'a'}: 1 passed of 1",
        f"{folder / 'b'}: 1 failed of 1",
        "1 passed, 1 failed of 2",
    ]
    done = cli("packetdrill", "--json", folder, ok=False)
    good, bad = json.loads(done.stdout)
    assert good == {"outcome": "pass", "path": str(folder / "a/good.pkt"), "printed": []}
    assert (bad["outcome"], bad["line"]) == ("fail", 8)
    assert bad["expected"] == "read() to return 5"


def test_what_is_not_there_is_told_in_one_line(cli: Cli, tmp_path: Path) -> None:
    done = cli("packetdrill", tmp_path / "none.pkt", ok=False)
    assert done.returncode == 2
    missing = tmp_path / "none.pkt"
    assert done.stderr == f"longfat: cannot read {missing}: No such file or directory\n"
    done = cli("packetdrill", tmp_path, ok=False)
    assert done.stderr == "longfat: no *.pkt below what was given\n"
