"""`longfat packetdrill` on valid, failing, unsupported and invalid scripts."""

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


def test_a_valid_script_passes(cli: Cli) -> None:
    path = OWN / "handshake-passive.pkt"
    done = cli("packetdrill", path)
    assert done.stdout == f"pass {path}\n1 passed of 1\n"


def test_reports_the_first_mismatch(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "wrong.pkt", "   +0 write(4, ..., 100) = 100\n   +0 > P. 1:200(199) ack 1\n")
    done = cli("packetdrill", path, ok=False)
    assert done.returncode == 1
    first, total = done.stdout.splitlines()
    assert first.startswith(f"FAIL {path}:9 expected P. 1:200(199) ack 1 at 0.050000s, seen ")
    assert "P. 1:101(100) ack 1" in first
    assert total == "1 failed of 1"


def test_reports_unsupported_features(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "splice.pkt", "   +0 splice(4, 5, 10) = 10\n")
    done = cli("packetdrill", path)
    assert done.stdout == f"unsupported {path}:8 the system call splice()\n1 unsupported of 1\n"


def test_reports_syntax_errors(cli: Cli, tmp_path: Path) -> None:
    path = script(tmp_path, "broken.pkt", "   +0 > Q. 1:1(0)\n")
    done = cli("packetdrill", path, ok=False)
    assert done.returncode == 1
    assert done.stdout.startswith(f"INVALID {path}:8 `Q` is not a TCP flag")


def test_the_json_has_the_summary(cli: Cli, tmp_path: Path) -> None:
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


def test_the_table_has_the_reasons(cli: Cli, tmp_path: Path) -> None:
    script(tmp_path, "a/good.pkt")
    script(tmp_path, "b/bad.pkt", "   +0 read(4, ..., 5) = 5\n")
    script(tmp_path, "b/splice.pkt", "   +0 splice(4, 5, 10) = 10\n")
    done = cli("packetdrill", "--table", tmp_path, ok=False)
    assert done.returncode == 1
    rows = [
        "| b/bad.pkt | fail | line 8: expected read() to return 5, seen no return |",
        "| b/splice.pkt | unsupported | line 8: the system call splice() |",
    ]
    head = ["| script | result | reason |", "| --- | --- | --- |"]
    assert done.stdout.splitlines() == [*head, *rows, "", "1 passed, 1 failed, 1 unsupported of 3"]
    done = cli("packetdrill", "--table", "--passed", tmp_path / "a")
    assert done.stdout.splitlines() == [*head, "| good.pkt | pass |  |", "", "1 passed of 1"]


def test_reports_missing_scripts(cli: Cli, tmp_path: Path) -> None:
    done = cli("packetdrill", tmp_path / "none.pkt", ok=False)
    assert done.returncode == 2
    missing = tmp_path / "none.pkt"
    assert done.stderr == f"longfat: cannot read {missing}: No such file or directory\n"
    done = cli("packetdrill", tmp_path, ok=False)
    assert done.stderr == "longfat: no *.pkt files found\n"


def test_every_script_passes(cli: Cli) -> None:
    done = cli("packetdrill", "--summary", OWN)
    counts = done.stdout.splitlines()[-1].split()
    assert counts[1:3] == ["passed", "of"]
    assert counts[0] == counts[3]
    assert int(counts[0]) >= 50


def test_an_empty_script_is_invalid(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "empty.pkt"
    path.touch()
    assert f"INVALID {path}:1 the script has no events" in cli("packetdrill", path, ok=False).stdout


def test_snippets_read_tcp_info(cli: Cli, tmp_path: Path) -> None:
    snippets = (
        "   +0 %{ cwnd = tcpi_snd_cwnd; print(cwnd, 'packets') }%\n   +0 %{ assert cwnd == 11, 'cwnd' }%\n"
    )
    path = script(tmp_path, "cwnd.pkt", snippets)
    done = cli("packetdrill", "--json", path, ok=False)
    (report,) = json.loads(done.stdout)
    assert (report["outcome"], report["line"], report["printed"]) == ("fail", 9, ["10 packets"])
    assert (report["expected"], report["seen"]) == ("assert cwnd == 11, 'cwnd'", "cwnd = 10 (cwnd)")
    path = script(tmp_path, "unknown.pkt", "   +0 %{ assert tcpi_nonesuch == 1 }%\n")
    assert cli("packetdrill", path).stdout.startswith(f"unsupported {path}:8 the figure tcpi_nonesuch\n")
