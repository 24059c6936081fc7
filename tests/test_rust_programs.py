"""The runner of the Rust tests, with scripts instead of compiled programs."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests import rust_programs
from tests.rust_programs import Program, Runner
from tests.waiting import wait_until


def program(folder: Path, script: str, name: str = "all") -> Program:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return Program("longfat-x", name, str(file), folder)


RESULT = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.10s"


def test_a_program_that_passes_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = f'test "$RUST_TEST_THREADS" -gt 0 && test "$PWD" = {tmp_path} && echo "{RESULT}"'
    outcome = Runner([]).run(program(tmp_path, script))
    (line,) = capsys.readouterr().out.splitlines()
    assert line == outcome.summary
    assert not outcome.failed
    assert line.startswith("ok     longfat-x all: 3 passed; 0 failed; 1 ignored; ")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"echo the reason; echo '{RESULT}'; exit 101", "exit status 101; "),
        ("echo the reason; kill -KILL $$", "exit status -9; "),
        ("echo the reason", "exit status 0; "),
    ],
    ids=["failed", "killed", "without a result"],
)
def test_a_program_that_fails_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, reason: str
) -> None:
    (outcome,) = rust_programs.run([program(tmp_path, script)], [])
    shown = capsys.readouterr().out
    assert outcome.failed
    assert "the reason\n" in shown
    assert shown.splitlines()[-1].startswith(f"FAILED longfat-x all: {reason}")


FAILURES = r"""
failures:

---- rate::is_kept stdout ----
assertion failed

failures:
    delay
    rate::is_kept

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""


def test_failed_tests_that_take_wall_time_are_repeated_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = f"""echo "$*" >> calls
        case "$*" in *--exact*) echo "{RESULT}";; *) cat <<'END'
{FAILURES}
END
        exit 101;; esac"""
    failing = program(tmp_path, script)
    waiting = replace(failing, crate="longfat-emulation")
    outcomes = rust_programs.run([failing, waiting], [], at_once=1)
    assert [outcome.failed for outcome in rust_programs.repeat(outcomes)] == [True, False]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["", "", "--exact --test-threads=1 delay rate::is_kept"]
    assert (
        "Repeating 2 failed tests of longfat-emulation all: delay, rate::is_kept\n" in capsys.readouterr().out
    )


def test_a_test_that_fails_again_fails(tmp_path: Path) -> None:
    failing = replace(program(tmp_path, f"cat <<'END'\n{FAILURES}\nEND\nexit 101"), crate="longfat-socket")
    (outcome,) = rust_programs.repeat(rust_programs.run([failing], []))
    assert outcome.failed


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    outcome = Runner([], timeout_s=1.0).run(program(tmp_path, script))
    assert "exit status killed after 1 s" in outcome.summary
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    wait_until(lambda: not child.exists())


def test_a_closed_runner_kills_and_starts_nothing(tmp_path: Path) -> None:
    runner = Runner([])
    thread = threading.Thread(target=runner.run, args=[program(tmp_path, "touch started; exec sleep 600")])
    thread.start()
    wait_until((tmp_path / "started").exists)
    runner.close()
    thread.join(60)
    assert not thread.is_alive()
    assert "not started" in runner.run(program(tmp_path, "true", "other")).summary


def test_programs_that_wait_come_first() -> None:
    def message(crate: str, kind: str, *, test: bool = True) -> str:
        return json.dumps(
            {
                "reason": "compiler-artifact",
                "manifest_path": f"/p/crates/{crate}/Cargo.toml",
                "target": {"name": "all" if kind == "test" else crate, "kind": [kind]},
                "profile": {"test": test},
                "executable": f"/p/{crate}-{kind}" if test else None,
            }
        )

    messages = [
        message("network", "test"),
        message("network", "lib"),
        message("network", "lib", test=False),
        message("emulation", "test"),
        json.dumps({"reason": "build-finished", "success": True}),
    ]
    found = rust_programs.programs("\n".join(messages))
    assert [(one.crate, one.name) for one in found] == [
        ("longfat-emulation", "all"),
        ("longfat-network", "all"),
        ("longfat-network", "lib"),
    ]
    assert found[0].folder == Path("/p/crates/emulation")


def test_reasons_of_skipped_tests_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "skipped"
    assert rust_programs.skipped(file) == []
    file.write_text("one: tun: no device\ntwo: tun: no device\nthree: bpf: no clang\n")
    assert rust_programs.skipped(file) == [
        "   2 skipped: tun: no device",
        "   1 skipped: bpf: no clang",
    ]
