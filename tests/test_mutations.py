"""Mutated studies and arguments: each ends with a result or one line of error per mistake.

`LONGFAT_MUTATIONS` sets the number of mutated studies.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import tomli_w

from longfat import _native
from longfat.study import StudyError, load_study
from longfat.study.catalogue import builtin
from longfat.study.sweep import cells
from longfat.study.vocabulary import canonical
from tests import in_process
from tests.effort import count
from tests.waiting import PATIENCE_S

COUNT = count("LONGFAT_MUTATIONS", 800)
ARGUMENTS = COUNT // 3
TRIAL_S = 0.3
"""Time after which a trial is interrupted: mutations can make it long."""
VALUES: list[Any] = [
    "",
    " ",
    "0",
    "-1",
    "0s",
    "1ns",
    "1h",
    "0bit/s",
    "1bit/s",
    "1000Tbit/s",
    "0%",
    "100%",
    "101%",
    "1B",
    "1TB",
    "1pkt",
    "NaN",
    "inf",
    "é\n\t",
    "x" * 300,
    "a:b",
    "../x.py:Y",
    "tcp",
    "mptcp",
    "udp",
    "go-back-n",
    "bbr",
    "codel",
    "bulk",
    "file",
    0,
    -1,
    1,
    2**31,
    2**63,
    2**70,
    1.5,
    1e300,
    True,
    False,
    [],
    [[]],
    {},
    {"kind": "bulk"},
    {"": 1},
    ["1%", 2],
]
SMALL: dict[str, Any] = {
    "title": "small",
    "repeats": 1,
    "path": {"rate": "10Mbit/s", "delay": "5ms", "queue": "20pkt", "loss": "1%"},
    "workload": {"kind": "bulk", "duration": "100ms"},
    "protocols": [{"name": "a", "kind": "tcp"}, {"name": "b", "kind": "selective-repeat", "window": 8}],
    "traffic": [
        {"name": "x", "protocol": {"kind": "udp"}, "workload": {"kind": "on-off", "rate": "1Mbit/s"}}
    ],
    "sweep": {"path.delay": ["1ms", "10ms"]},
    "claims": [
        {"id": "c", "text": "t", "metric": "goodput", "of": "a", "relation": "at-least", "value": "1bit/s"}
    ],
}


class InterruptedTrialError(Exception):
    """The time of a trial is over."""


@contextlib.contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    """Raises `InterruptedTrialError` in the main thread after a time, until the end of the context."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        raise InterruptedTrialError

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    except InterruptedTrialError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Returns all tables and lists with each of their keys."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        found.append((value, key))
        places(inner, found)
    return found


def mutate(random_: random.Random, data: dict[str, Any]) -> None:
    """Changes one to three places of a study."""
    for _ in range(random_.randint(1, 3)):
        if not (all_ := places(data, [])):
            return
        table, key = random_.choice(all_)
        match random_.randrange(6):
            case 0:
                del table[key]
            case 1 if isinstance(table, dict):
                table[random_.choice(["x", "kind", f"{key}x", "rate", "", "a.b", "sweep"])] = table.pop(key)
            case 2 if isinstance(table, list):
                table.append(copy.deepcopy(table[key]))
            case 3:
                table[key] = copy.deepcopy(random_.choice(all_)[0])
            case _:
                table[key] = copy.deepcopy(random_.choice(VALUES))


def checked(data: dict[str, Any], words: object) -> Sequence[Any]:
    """Loads a study; its errors are lines of bounded length. Returns the cells of a valid one."""
    try:
        return cells(load_study(data))
    except StudyError as error:
        text = str(error)
    assert text.strip(), words
    assert "Traceback" not in text, words
    assert all(len(line) < 4000 for line in text.splitlines()), words
    return []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_mutated_studies_end() -> None:
    seed = int(os.environ.get("LONGFAT_SEED", "1"))
    bases = [SMALL] * 60 + [
        load_study(path).model_dump(exclude_unset=True, by_alias=True) for path in builtin().values()
    ]
    ran = 0
    for number in range(COUNT):
        random_ = random.Random(f"{seed}/{number}")
        data = copy.deepcopy(random_.choice(bases))
        mutate(random_, data)
        for cell in checked(data, (number, data))[:2]:
            if cell.world != "sim":
                continue
            text = canonical({**cell.spec, "seed": 1})
            started, mistake = time.monotonic(), "one line"
            try:
                with interrupted(TRIAL_S):
                    record = json.loads(_native.simulate(text))
                    assert record["error"] or record["metrics"] is not None, text
                    ran += 1
            except ValueError as error:
                mistake = str(error)
                ran += time.monotonic() - started >= TRIAL_S  # interrupted
            assert len(mistake.splitlines()) == 1, text
            assert time.monotonic() - started < PATIENCE_S, text
    print(f"{ran} of {COUNT} ran")
    assert ran > COUNT / 50


WORDS = [
    "arq/loss",
    "congestion/delay",
    "no/such",
    "",
    "-",
    "--",
    "--set",
    "path.loss=2%",
    "path.loss",
    "protocols=[",
    "=",
    "a" * 5000,
    "[" * 3000,
    "--seed",
    "--repeats",
    "--world",
    "sim",
    "--quick",
    "--cell",
    "path.loss=1%",
    "--protocol",
    "--chart",
    "--metric",
    "goodput@s9",
    "--json",
    "--help",
    "--from",
    "--to",
    "-1",
    "0",
    "1e400",
    "99999999999999999999",
    "10ms",
    "é\n",
    "/dev/null",
    "/",
    ".",
    "--csv",
    "--out",
    "--budget",
    "--shard",
    "3/2",
]
COMMANDS = ["run", "list", "schema", "chart", "trace", "predict", "packetdrill", "nonsense", ""]


def test_mutated_arguments_are_errors_of_one_line(tmp_path: Path) -> None:
    seed = int(os.environ.get("LONGFAT_SEED", "1"))
    (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    for number in range(ARGUMENTS):
        random_ = random.Random(f"arguments/{seed}/{number}")
        command = random_.choice(COMMANDS)
        words = random_.choices([*WORDS, "small.toml"], k=random_.randint(0, 4))
        if command == "packetdrill":
            # It reads all scripts below a folder.
            words = [word for word in words if word != "/"]
        if command == "run":
            # A valid command line stays short.
            words += ["--quick", "--budget", "1ms", "--max-trials", "2"]
        done = in_process.run(tmp_path, [command, *words])
        what = (number, command, words, done.stderr)
        assert done.returncode in (0, 1, 2), what
        assert "Traceback" not in done.stderr, what
        assert "internal error" not in done.stderr, what
        assert "panicked" not in done.stderr, what
        assert len(done.stderr) < 20_000, what
