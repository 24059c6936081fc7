"""`longfat demo`."""

from __future__ import annotations

import re

from tests.conftest import Cli


def test_demo_answers_a_question_and_moves_a_real_file(cli: Cli) -> None:
    done = cli("demo", "--trials", "5")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 100
    means = {
        match[1].strip(): float(match[2])
        for match in re.finditer(r"^   ([A-Z][\w -]+?) +█+ +([\d.]+) ±", done.stdout, re.MULTILINE)
    }
    assert list(means) == ["Stop-and-wait", "Go-Back-N", "Selective repeat"]
    assert means["Stop-and-wait"] < means["Go-Back-N"] < means["Selective repeat"]
    gain = re.search(r"is ([\d.]+) times as fast as Go-Back-N \(95 % CI ([\d.]+) to ([\d.]+)\)", done.stdout)
    assert gain is not None
    assert float(gain[2]) <= float(gain[1]) <= float(gain[3])
    assert done.stdout.count("content verified") == 2
    for wrong in ("fails", "undecided", "misses", "nan"):
        assert wrong not in done.stdout
