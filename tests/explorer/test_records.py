"""The simulator as WebAssembly produces the records of the native one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longfat import _native
from longfat.study import builtin, load_study
from longfat.study.sweep import cells
from longfat.study.work import work

SCRIPT = Path(__file__).parent / "records.mjs"
MOST_PACKETS = 8_000
"""Limit of the trials of this test; a larger trial takes long in a test build."""


def specs() -> list[dict[str, Any]]:
    """The first short simulated trial of each built-in study. WebAssembly has no QUIC."""
    found = []
    for name in sorted(builtin()):
        study = load_study(name)
        simulated = (
            one for one in cells(study) if one.world == "sim" and one.spec["protocol"]["kind"] != "quic"
        )
        short = (one for one in simulated if work(one.spec).packets < MOST_PACKETS)
        if first := next(short, None):
            found.append({**first.spec, "seed": study.seed, "trial": 0})
    return found


@pytest.mark.slow
def test_records_are_those_of_the_native_simulator(folder: Path, node: str) -> None:
    given = specs()
    assert len(given) > 10
    done = subprocess.run(
        [node, str(SCRIPT), str(folder / "simulator.js")],
        input="".join(json.dumps(spec) + "\n" for spec in given),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replies) == len(given)
    engine = _native.Explorer()
    for spec, reply in zip(given, replies, strict=True):
        request = json.dumps({"do": "run", "spec": spec}).encode()
        assert reply == json.loads(engine.reply(request)), spec
        assert "ok" in reply, reply
