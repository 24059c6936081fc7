"""Completion in shells: presets, studies and topics."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from longfat.cli.commands import list as listing
from longfat.study.catalogue import builtin


def _completed(line: str) -> list[str]:
    """Returns what bash would offer for the last word of a command line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_LONGFAT_COMPLETE": "complete_bash"}
    code = "import sys; sys.argv[0] = 'longfat'; from longfat.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize("command", ["predict", "shell", "relay"])
def test_presets_are_completed(command: str) -> None:
    assert _completed(f"longfat {command} --preset l") == ["lan", "lte"]


@pytest.mark.parametrize("command", ["run", "trace", "check", "net"])
def test_built_in_studies_are_completed(command: str) -> None:
    names = [name for name in builtin() if name.startswith("arq/l")]
    found = _completed(f"longfat {command} arq/l")
    assert found == names or (command == "net" and not found)


def test_topics_are_completed() -> None:
    assert _completed("longfat list pre") == ["presets"]
    assert set(listing.TOPICS) == set(listing._topics())
